package metadataversion

import (
	"encoding/hex"
	"strconv"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/txnlog"
)

// Describe is the name of a record's type, and its key and value as Kafka's JSON, or as hex in
// quotes where they cannot be read.
func Describe(log Log, key, value []byte) (typ string, k, v []byte) {
	_, t := entityOf(log, key)
	typ = Loss{Log: log, Type: t}.TypeName()
	k, v = strconv.AppendQuote(nil, hex.EncodeToString(key)), strconv.AppendQuote(nil, hex.EncodeToString(value))
	if log == TransactionsLog {
		if read, err := txnlog.DecodeKey(key); err == nil {
			k = read.AppendJSON(nil)
			if read, version, err := txnlog.DecodeValue(read.Type(), value); err == nil {
				v = read.AppendJSON(nil, version)
			}
		}
		return typ, k, v
	}
	if read, err := groupmeta.DecodeKey(key); err == nil {
		k = read.AppendJSON(nil)
		if read, version, err := groupmeta.DecodeValue(read.Type(), value); err == nil {
			v = read.AppendJSON(nil, version)
		}
	}
	return typ, k, v
}
