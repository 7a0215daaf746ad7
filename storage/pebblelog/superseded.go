package pebblelog

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/kcoord/kcoord/storage"
)

// foldBatch is a batch of the chunk that is not part of a transaction.
type foldBatch struct {
	base storage.Offset
	size int64 // in the log
	live int   // its records that are their keys' latest, or stay for another reason
}

// inTxn stands for every batch that is not plain.
const inTxn = -1

// keep leaves the batch that is being read in the log.
func (f *fold) keep() {
	if f.at != inTxn {
		f.plain[f.at].live++
	}
}

// dead is how much of the log the chunk's own batches supersede.
func (f *fold) dead() (size int64) {
	for i := range f.plain {
		if f.plain[i].live == 0 {
			size += f.plain[i].size
		}
	}
	return size
}

// bare takes the batches out of the log of which nothing is live. Most of what is
// committed over and over is: taken out here, while pebble has it in memory, it is
// never written to a table.
//
// SingleDelete requires that the key was set once. Cleaning sets it anew, but only below the
// fold: pebble's WAL is one sequence, so that no crash leaves a cleaning without the fold before it.
func (f *fold) bare(batch *pebble.Batch) error {
	var buf [logKeySize]byte
	for i := range f.plain {
		if f.plain[i].live > 0 {
			continue
		}
		if err := batch.SingleDelete(logKey(buf[:0], f.shard.id, f.plain[i].base), nil); err != nil {
			return err
		}
	}
	return nil
}
