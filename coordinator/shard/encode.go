package shard

import (
	"time"

	"github.com/kcoord/kcoord/coordinator/machine"
	"github.com/kcoord/kcoord/storage"
)

// encoder keeps the memory that a step's records are encoded in.
type encoder struct {
	key, value []byte
	ends       []span
	recs       []storage.Record
}

// span is where a record's key and value end.
type span struct {
	key, value int
	tombstone  bool
	txn        storage.Txn
}

func (e *encoder) reset() {
	e.key, e.value, e.ends = e.key[:0], e.value[:0], e.ends[:0]
}

// encode adds a record in Kafka's bytes.
func encode[Rec any](e *encoder, codec machine.Codec[Rec], rec *Rec) {
	var sp span
	e.key, e.value, sp.tombstone = codec.Append(e.key, e.value, rec)
	sp.key, sp.value, sp.txn = len(e.key), len(e.value), codec.Txn(rec)
	e.ends = append(e.ends, sp)
}

// records are what was added since reset, and valid until then.
func (e *encoder) records(now time.Time) []storage.Record {
	e.recs = e.recs[:0]
	var from span
	for _, to := range e.ends {
		r := storage.Record{Key: e.key[from.key:to.key:to.key], Time: now, Txn: to.txn}
		if !to.tombstone {
			r.Value = e.value[from.value:to.value:to.value]
		}
		e.recs = append(e.recs, r)
		from = to
	}
	return e.recs
}
