// Package client is for programs that use kcoord beside a Kafka client: it sends what
// Kafka's protocol has no safe message for.
//
// An exactly-once loop commits the offsets that it has consumed with the records that it
// has made of them. Which member of which generation consumed them has to be said, or an
// instance that has lost its partitions still commits (KIP-447). In Kafka's protocol
// that is optional. Here it cannot be left out: SendOffsets takes a
// ConsumerGroupMetadata, which nobody can make, and MetadataOf takes it from a live member:
//
//	fetches := consumer.PollFetches(ctx)
//	member, err := client.MetadataOf(consumer) // who has consumed these
//	…
//	err = producer.BeginTransaction()
//	producer.Produce(ctx, …)                   // without a record franz-go has nothing to end
//	err = coordinator.SendOffsets(ctx, producer, member, offsets)
//	err = producer.EndTransaction(ctx, kgo.TransactionEndTry(err == nil))
package client
