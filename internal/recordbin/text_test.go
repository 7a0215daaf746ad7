package recordbin

import (
	"testing"
	"unicode/utf8"
)

// TestJavaString: the number of U+FFFD is what java.lang.String makes of the bytes; the fixtures confirm the common ones.
func TestJavaString(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                  "plain",
		"\u0442\u043e\U0001f600": "\u0442\u043e\U0001f600",
		"\x00":                   "\x00",
		"a\x80b":                 "a\ufffdb",
		"\xff\xfe":               "\ufffd\ufffd",
		"\xc0\x80":               "\ufffd\ufffd", // over-long NUL, Java's own "modified UTF-8", is malformed too
		"\xc3":                   "\ufffd",
		"\xc3(":                  "\ufffd(",
		"\xe2\x82":               "\ufffd",
		"\xe2\x82(":              "\ufffd(",
		"\xe2(\xa1":              "\ufffd(\ufffd",
		"\xe0\x80\x80":           "\ufffd\ufffd\ufffd",
		"\xed\xa0\x80":           "\ufffd", // a surrogate is one; Go would make it three
		"\xed\xa0":               "\ufffd",
		"\xf0\x9f\x98":           "\ufffd",
		"\xf0\x9f\x98(":          "\ufffd(",
		"\xf0\x28\x8c\x28":       "\ufffd(\ufffd(",
		"\xf0\x8f\xbf\xbf":       "\ufffd\ufffd\ufffd\ufffd",
		"\xf4\x90\x80\x80":       "\ufffd\ufffd\ufffd\ufffd",
		"\xf5\x80\x80\x80":       "\ufffd\ufffd\ufffd\ufffd",
	} {
		if got := JavaString([]byte(in)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzJavaString(f *testing.F) {
	f.Add([]byte("a\xed\xa0\x80\xf0\x9f\x98\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := JavaString(b)
		if !utf8.ValidString(s) || utf8.Valid(b) && s != string(b) || len(s) > 3*len(b) {
			t.Fatalf("%q became %q", b, s)
		}
	})
}
