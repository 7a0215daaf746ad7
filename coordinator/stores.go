package coordinator

import (
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/group/state"
	"github.com/kcoord/kcoord/coordinator/txn"
	txnstate "github.com/kcoord/kcoord/coordinator/txn/state"
	"github.com/kcoord/kcoord/metadataversion"
	"github.com/kcoord/kcoord/storage"
)

// store is one shard as a change of versions sees it, of whichever log.
type store struct {
	id        storage.ShardID
	partition int32
	log       metadataversion.Log
	// entity is the group or transactional id of a key; false: it has none.
	entity func(key []byte) (string, bool)
	// send has the shard put records in the place of stored ones of one entity. With none
	// it waits for what was decided before.
	send func(entity string, orphans bool, items []item, reply func(written int, err error))
	// write has records written in other versions from the next step on.
	write func(Finalized)
}

// item is what becomes of one stored record.
type item struct {
	at         storage.Offset
	key, value []byte // a deleted record's is the stored value
	deleted    bool
}

func (n *Node) stores() []*store {
	var all []*store
	for i := range n.shards {
		all = append(all, n.groupStore(i))
	}
	for i := range n.txns {
		all = append(all, n.txnStore(i))
	}
	return all
}

func (n *Node) groupStore(i int) *store {
	s, id := n.shards[i], storage.ShardID(i)
	var codec state.Codec // one that tells nobody of what it cannot read
	return &store{
		id: id, partition: int32(i), log: metadataversion.GroupLog,
		entity: func(key []byte) (string, bool) {
			entity, class := state.Index(id, key)
			return string(entity), class != storage.Orphan
		},
		send: func(entity string, orphans bool, items []item, reply func(int, error)) {
			r := group.Rewrite{Group: entity, Orphans: orphans}
			for _, it := range items {
				rec := codec.Exactly(it.key, it.value)
				if it.deleted {
					rec.Tombstone, rec.Value = true, nil
				}
				r.Records = append(r.Records, group.Rewriting{At: it.at, Record: rec})
			}
			s.Do(r, func(resp group.Response, err error) {
				if err != nil {
					reply(0, err)
					return
				}
				reply(resp.(group.Rewritten).Records, nil)
			})
		},
		write: func(f Finalized) {
			s.Adjust(func(groupMachine) { n.codecs[i].Versions = f.writes() })
		},
	}
}

func (n *Node) txnStore(i int) *store {
	s, id := n.txns[i], TxnShards+storage.ShardID(i)
	var codec txnstate.Codec // one that tells nobody of what it cannot read
	return &store{
		id: id, partition: int32(i), log: metadataversion.TransactionsLog,
		entity: func(key []byte) (string, bool) {
			entity, class := txnstate.Index(id, key)
			return string(entity), class != storage.Orphan
		},
		send: func(entity string, orphans bool, items []item, reply func(int, error)) {
			r := txn.Rewrite{TransactionalID: entity, Orphans: orphans}
			for _, it := range items {
				rec := codec.Exactly(it.key, it.value)
				if it.deleted {
					rec.Tombstone, rec.Value, rec.Txn = true, nil, nil
				}
				r.Records = append(r.Records, txn.Rewriting{At: it.at, Record: rec})
			}
			s.Do(r, func(resp txn.Response, err error) {
				if err != nil {
					reply(0, err)
					return
				}
				reply(resp.(txn.Rewritten).Records, nil)
			})
		},
		write: func(f Finalized) {
			s.Adjust(func(m txnMachine) {
				n.txnCodecs[i].Versions = f.writes()
				if open, is := m.(*txn.Machine); is {
					open.SetTransactionVersion(n.transactionVersion(f))
				}
			})
		},
	}
}

// transactionVersion is the one that the coordinator itself decides by: what is finalized,
// within what the settings allow.
func (n *Node) transactionVersion(f Finalized) int16 {
	return max(1, min(n.o.Txn.TransactionVersion, f.Levels[metadataversion.TransactionVersion]))
}
