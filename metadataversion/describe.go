package metadataversion

import (
	"strconv"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/txnlog"
)

// Describe is the name of a record's type and its key as Kafka's JSON, or as hex in
// quotes where it cannot be read.
func Describe(log Log, key []byte) (typ string, json []byte) {
	_, t := entityOf(log, key)
	typ = Loss{Log: log, Type: t}.TypeName()
	e := located{log: log, key: key}.example()
	if json = []byte(e.Key); !isObject(log, key) {
		json = strconv.AppendQuote(nil, e.Key)
	}
	return typ, json
}

func isObject(log Log, key []byte) bool {
	if log == TransactionsLog {
		_, err := txnlog.DecodeKey(key)
		return err == nil
	}
	_, err := groupmeta.DecodeKey(key)
	return err == nil
}
