// Package recordbin is what the generated record codecs (packages groupmeta and txnlog) stand on: a reader and a writer
// of Kafka's primitive types, tagged fields that nobody here knows, and Kafka's JSON.
//
// # The invariant
//
// Reading is total. Whatever the bytes are, a Reader neither panics nor allocates more than a small constant times what
// is left of its input (see [Reader.ArrayLen]), and either every value it handed out was in the input or [Reader.Err]
// says where and why not. It gets there by failing once: the first failure is remembered with its position, every later
// call returns zero values, and generated code asks for the error at the end instead of after each field. Loops over
// counts from the input stop at the first failure.
//
// What is accepted is what Apache Kafka 4.4 accepts, down to its oddities, because a record that Kafka serves and kcoord
// refuses costs a user his group: over-long varints, bytes after the end, the size of a known tagged field not matching
// its content, and malformed UTF-8 (each malformed run becomes U+FFFD, see [JavaString]). Strings handed out are
// therefore always valid UTF-8. Only a Reader made strict, for record versions that did not exist when this was
// written, insists that sizes match and that nothing is left: there, a coincidence must not be taken for a parse.
package recordbin
