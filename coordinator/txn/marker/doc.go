// Package marker writes the markers of decided transactions: to the brokers that
// lead their partitions, and to our own shards of groups.
//
// It holds no truth. What is to be written comes as an effect of the transaction's
// shard, which emits it again whenever it is loaded; what was written is told to that
// shard by an ordinary request, which names the attempt. So the Sender may forget
// everything at any moment: a crash costs markers that are written twice, and the
// second does no harm, since a partition without an open transaction of that producer takes it
// for what it is. Nothing here is stored.
//
// # Nothing is given up that may still be there
//
// A partition without its marker holds back every consumer that reads committed
// records, and a transaction that counts as complete never gets another. So a partition is
// left out on one ground alone: its topic is no more (PartitionsGone). That a leader is
// not known, that nobody answers, that a broker which has just started shows no topics yet,
// prove nothing: Kafka drops such markers, and 4.4.0 was seen to lose
// transactions so. A topic counts as gone when goneLooks answers of the cluster in a row,
// goneApart from each other, say of its very name that it does not exist.
//
// Everything else is tried again for as long as it takes, at growing intervals and after a
// new look at who leads. Brokers do not wait for each other: each has one request in
// flight, and what comes meanwhile goes with the next.
package marker
