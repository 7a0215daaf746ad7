// Package recordlog reads and writes Kafka's record batches (message format v2)
// byte for byte: what it writes a broker can serve, and what a broker wrote it
// gives back unchanged.
//
// The invariant is that decoding loses nothing. A Header keeps every field of
// the 61 bytes, a Record keeps its attributes and headers raw and tells a nil
// key or value from an empty one; so Encode of what was decoded is the same
// bytes, and Filter, which drops records as Kafka's cleaner does, copies the
// kept ones as they are. Whatever is stored is untrusted: lengths and counts are
// checked before they are believed, memory is never allocated on their word,
// and the error names the position of the batch.
//
// Nothing here keeps or copies bytes: keys and values alias the input.
package recordlog
