package kafka

import (
	"reflect"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/internal/recordbin"
)

// readRequest reads a request, and its strings as Kafka reads them: what is no UTF-8
// becomes U+FFFD. Records are read so, too: a group that was live under other bytes
// would not be found under them after a restart, and neither the admin API nor metrics
// can tell of such a name. The decoder of the frequent requests does the same.
func readRequest(req kmsg.Request, body []byte) error {
	if err := req.ReadFrom(body); err != nil {
		return errMalformed
	}
	mend(reflect.ValueOf(req).Elem())
	return nil
}

// mend goes through all strings that a message holds.
func mend(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			v.SetString(recordbin.JavaString([]byte(s)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			mend(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			mend(v.Field(i))
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice:
			for i := range v.Len() {
				mend(v.Index(i))
			}
		}
	}
}
