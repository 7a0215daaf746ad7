// Package coordinator is the Node: it knows which shard an id belongs to, opens
// the shards over one storage backend, drives their timers, and asks several of
// them where one request is about more than one.
//
// Shards never call each other. What spans shards (listing all groups, a
// transaction) is a sequence of ordinary requests, each answered when it is
// durable, so there is nothing here that a crash could leave half done.
package coordinator
