// Package groupmeta reads and writes the records of __consumer_offsets: every key and every version of every value that
// Apache Kafka 4.4 has, in Kafka's own bytes.
//
// # The invariant
//
// Whatever was decoded, encoding it in the version it was read in gives the bytes that Kafka would write for it, and
// these decode to an equal value. In particular a record that Kafka wrote comes back byte for byte, whatever tagged
// fields a later Kafka put into it: those that the schema does not know are carried in UnknownTags (KIP-915).
//
// Three things follow for who uses it.
//
//   - Not every stored record is in the form that Kafka would write: trailing bytes, explicit defaults, over-long varints
//     and malformed UTF-8 are read and then normalised. So stored bytes, above all a stored key's, are to be kept and
//     compared as they are, not by way of decode and encode. docs/records.md lists what is normalised.
//   - A version that is not known is read in the highest known layout, if that accounts for every byte of it, and is
//     written back under its own number. A value does not know its version: it comes out of Decode and goes into
//     AppendTo.
//   - Writing a lower version drops the fields that Kafka calls ignorable, and fails where others or unknown tagged
//     fields would be lost. What a downgrade loses is thus never silent except where Kafka decided that it may be;
//     package metadataversion plans downgrades on top of that.
//
// The structs, their codecs and their JSON are generated from records.schema by internal/recordgen. Go's zero value is
// not always Kafka's default (OffsetCommitValue.LeaderEpoch is -1): use the New functions.
package groupmeta
