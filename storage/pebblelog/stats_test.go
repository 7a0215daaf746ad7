package pebblelog

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/logtest"
)

func TestStats(t *testing.T) {
	o := never(vfs.NewMem())
	b, err := Open("data", logtest.Index, o)
	if err != nil {
		t.Fatal(err)
	}
	durable := make(chan storage.Offset, 1)
	log, err := b.Open(3, func(end storage.Offset, _ error) { durable <- end })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := log.Append([]storage.Record{{Key: []byte("key"), Value: []byte("value"), Time: time.UnixMilli(int64(i))}}); err != nil {
			t.Fatal(err)
		}
		<-durable
	}
	s := b.Stats()
	for name, h := range map[string]Histogram{"flush": s.Flush, "append": s.Append, "batch": s.Batch} {
		n := uint64(0)
		for _, c := range h.Counts {
			n += c
		}
		if n != 3 || h.Sum <= 0 || len(h.Counts) != len(h.Bounds)+1 {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if s.Tail == 0 || s.Folds.Count != 0 {
		t.Errorf("before a fold: %+v", s)
	}
	if err := log.Load([]byte("key"), func(storage.Offset, storage.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := b.shard(3).fold(); err != nil {
		t.Fatal(err)
	}
	if err := b.shard(3).clean(time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	after := b.Stats()
	if after.Tail != 0 || after.Folds.Count != 1 || after.Folds.Bytes != s.Tail || after.Cleans.Count != 1 || after.Cleans.Bytes == 0 || after.Disk == 0 {
		t.Errorf("after a fold of %d bytes: %+v", s.Tail, after)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Folds.Count != 1 || s.Disk != 0 {
		t.Errorf("closed: %+v", s)
	}
}

func TestHistogramBuckets(t *testing.T) {
	h := histogram{bounds: []float64{1, 2}}
	for _, v := range []float64{0, 1, 1.5, 2, 3} {
		h.observe(v)
	}
	if s := h.snapshot(); s.Counts[0] != 2 || s.Counts[1] != 2 || s.Counts[2] != 1 || s.Sum != 7.5 {
		t.Errorf("%+v", s)
	}
}
