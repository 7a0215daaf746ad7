package metadataversion

import (
	"errors"

	"github.com/kcoord/kcoord/internal/recordbin"
	"github.com/kcoord/kcoord/txnlog"
)

func (rw *Rewriter) transaction(dst []byte, key, value []byte) Result {
	k, err := txnlog.DecodeKey(key)
	switch {
	case errors.Is(err, txnlog.ErrUnknownType) && rw.reader.unknownType[TransactionsLog] == Skipped:
		return Result{}
	case errors.Is(err, txnlog.ErrUnknownType):
		return gone(WholeRecord, value, nil)
	case rw.reader.highest[TransactionLog] == None:
		return gone(WholeRecord, value, errNoTransactions)
	case err != nil:
		return gone(Damaged, value, err)
	case value == nil:
		return Result{}
	}
	v, version, err := txnlog.DecodeValue(k.Type(), value)
	if err == nil {
		err = impossible(v, rw.reader.fields)
	}
	if err != nil {
		return gone(Damaged, value, err)
	}
	to := recordbin.Nearest(version, rw.reader.highest[TransactionLog])
	known := rw.reader.fields
	if to < 1 {
		known = 0
	}
	lost := strip(v, known)
	if to < 1 {
		lost |= stripUnknown(v)
	}
	return settle(dst, value, v, version, to, to >= 1, lost)
}

// strip takes the tagged fields out that are not known, and says which of them were set. Correctness needs every one of
// them, so that it is a loss where they are ignored, too.
func strip(v txnlog.Value, known Fields) Fields {
	var lost Fields
	if known&PreviousProducerID == 0 && v.PreviousProducerID != -1 {
		lost, v.PreviousProducerID = lost|PreviousProducerID, -1
	}
	if known&NextProducerID == 0 && v.NextProducerID != -1 {
		lost, v.NextProducerID = lost|NextProducerID, -1
	}
	if known&NextProducerEpoch == 0 && v.NextProducerEpoch != -1 {
		lost, v.NextProducerEpoch = lost|NextProducerEpoch, -1
	}
	if known&ClientTransactionVersion == 0 && v.ClientTransactionVersion != 0 {
		lost, v.ClientTransactionVersion = lost|ClientTransactionVersion, 0
	}
	return lost
}

// stripUnknown takes out what version 0 has no place for.
func stripUnknown(v txnlog.Value) Fields {
	var lost Fields
	if v.UnknownTags != "" {
		lost, v.UnknownTags = UnknownTags, ""
	}
	for i := range v.TransactionPartitions {
		if p := &v.TransactionPartitions[i]; p.UnknownTags != "" {
			lost, p.UnknownTags = lost|UnknownTags, ""
		}
	}
	return lost
}
