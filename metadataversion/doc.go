// Package metadataversion knows Kafka's metadata versions as far as a coordinator is concerned: what each one writes into
// __consumer_offsets and __transaction_state, what each release can read of it, and so what going back to one would cost.
// It is pure: records come in as bytes, answers go out.
//
// # The invariant
//
// Nothing is lost that was not announced, and what is announced is lost. A plan is therefore not a second opinion about
// what a rewrite would do: [Planner.Visit] runs the very rewrite, record by record, throws its bytes away and counts
// what it reports as lost. There is one function that decides, [Rewriter.Rewrite], and it asks one table.
//
// The table (table.go) says for each version what changes in a record. Everything else follows from it by folding the
// changes in order: the record versions that are written ([Writes]), what a release reads ([ReaderOf]), and whether a
// version is backward compatible ([Version.IsBackwardCompatible]), which is nowhere typed in.
//
// # Two kinds of old readers
//
// KIP-915 taught Kafka 3.5 and the patch releases 3.0.3, 3.1.3, 3.2.4, 3.3.3 and 3.4.1 to skip record types that they do
// not know, to ignore unknown tagged fields, and to read the flexible versions of the three old values. A release before
// it fails to load the partition, logs that, and serves the partition empty. So a [Target] is not just a version: it is
// a version and the release that will read.
//
// For a release that tolerates newer records, fields it may ignore stay where they are; they are counted as ignored, not
// as lost. Fields that correctness needs (a transaction's next producer id) are taken out and counted as lost: left in
// place they would come back to life, out of date, when somebody upgrades again. The same holds for whole groups whose
// record types the target does not know: they are deleted and not left to be skipped.
package metadataversion
