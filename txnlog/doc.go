// Package txnlog reads and writes the records of __transaction_state in Kafka's own bytes: TransactionLogKey 0 and
// TransactionLogValue 0 and 1.
//
// The invariant is that of package groupmeta, from whose generator it comes: encoding what was decoded gives the bytes
// that Kafka would write, unknown tagged fields included. TransactionLogValue v0 cannot hold the tagged fields of v1
// (previous and next producer id, next epoch, client transaction version), which are not ignorable: writing it with one
// of them set fails.
package txnlog
