package state

// Record is one record of a transactional id as decisions write it and logs give it back.
type Record struct {
	Kind Kind
	ID   string
	// Tombstone says that the record deletes its key.
	Tombstone bool

	// Of KindTxn, unless a tombstone.
	Txn *Txn

	// Of KindOther and KindUnreadable: the bytes, owned by the record.
	Key, Value []byte
	// Of KindUnreadable: what is wrong.
	Problem error
}

// Kind says which fields of a Record count.
type Kind uint8

const (
	KindTxn        Kind = iota // TransactionLogKey and -Value
	KindUnreadable             // a TransactionLogKey whose value does not parse or makes no sense
	KindOther                  // a key of another type: kept, and of no id
)
