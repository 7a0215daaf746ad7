package state

import "github.com/kcoord/kcoord/metadataversion"

var latest = metadataversion.Writes(metadataversion.Latest, metadataversion.Defaults(metadataversion.Latest))

func (c *Codec) writes() metadataversion.RecordVersions {
	if c.Versions == (metadataversion.RecordVersions{}) {
		return latest
	}
	return c.Versions
}

// version is that of the value. Where there is no transaction log, what is
// decided is written as the first one that there was.
func (c *Codec) version() int16 { return max(c.writes().Transaction, 0) }

// Settle is part of machine.Codec. Records that have their bytes already are what
// these say.
func (c *Codec) Settle(r *Record) {
	if r.Kind != KindTxn || r.Tombstone || r.Key != nil {
		return
	}
	w, t := c.writes(), *r.Txn
	if !w.Has(metadataversion.PreviousProducerID) {
		t.Previous = NoProducerID
	}
	if !w.Has(metadataversion.NextProducerID) {
		t.Next = NoProducerID
	}
	if !w.Has(metadataversion.NextProducerEpoch) {
		t.NextEpoch = NoEpoch
	}
	if !w.Has(metadataversion.ClientTransactionVersion) {
		t.Version = 0
	}
	if c.version() < 1 {
		t.Tags = ""
	}
	if t.Previous != r.Txn.Previous || t.Next != r.Txn.Next || t.NextEpoch != r.Txn.NextEpoch ||
		t.Version != r.Txn.Version || t.Tags != r.Txn.Tags {
		r.Txn = &t
	}
}
