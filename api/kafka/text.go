package kafka

import (
	"math"
	"reflect"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/internal/recordbin"
)

// longest is the longest string that Kafka reads, in all versions, and that older ones
// have room for. A client of a longer one is hung up on, as Kafka does.
const longest = math.MaxInt16

// readRequest reads a request, and its strings as Kafka reads them: what is no UTF-8
// becomes U+FFFD. Records are read so, too: a group that was live under other bytes
// would not be found under them after a restart, and neither the admin API nor metrics
// can tell of such a name. The decoder of the frequent requests does the same.
func readRequest(req kmsg.Request, body []byte) error {
	if err := req.ReadFrom(body); err != nil || !complete(req, body) || !mend(reflect.ValueOf(req).Elem()) {
		return errMalformed
	}
	return nil
}

// mend goes through all strings that a message holds. It returns false when one is too long.
func mend(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			v.SetString(recordbin.JavaString([]byte(s)))
		}
		return v.Len() <= longest
	case reflect.Pointer:
		return v.IsNil() || mend(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if !mend(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice:
			for i := range v.Len() {
				if !mend(v.Index(i)) {
					return false
				}
			}
		}
	}
	return true
}
