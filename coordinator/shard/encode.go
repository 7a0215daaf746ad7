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
}

// encode turns a step's records into Kafka's bytes, which are valid until the next call.
func encode[Rec any](e *encoder, codec machine.Codec[Rec], now time.Time, recs []Rec) []storage.Record {
	e.key, e.value, e.ends, e.recs = e.key[:0], e.value[:0], e.ends[:0], e.recs[:0]
	for i := range recs {
		var sp span
		e.key, e.value, sp.tombstone = codec.Append(e.key, e.value, &recs[i])
		sp.key, sp.value = len(e.key), len(e.value)
		e.ends = append(e.ends, sp)
	}
	var from span
	for i, to := range e.ends {
		r := storage.Record{Key: e.key[from.key:to.key:to.key], Time: now, Txn: codec.Txn(&recs[i])}
		if !to.tombstone {
			r.Value = e.value[from.value:to.value:to.value]
		}
		e.recs = append(e.recs, r)
		from = to
	}
	return e.recs
}
