package recordbin

import "unicode/utf8"

// JavaString decodes UTF-8 as Java's String constructor does, with which Kafka reads every string: what is malformed
// becomes U+FFFD. How many U+FFFD a malformed run becomes is Java's choice too (Go and Java differ on surrogates and on
// sequences cut off at the end), and matters because a group's or topic's name is the result.
//
// Nothing is changed in valid UTF-8, where the cost is one scan.
func JavaString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(repair(b))
}

func javaText(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return repair(b)
}

func repair(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/2)
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		out = utf8.AppendRune(out, utf8.RuneError)
		b = b[malformed(b):]
	}
	return out
}

// malformed is the number of bytes at the head of b, which is not valid UTF-8, that Java replaces by one U+FFFD: the
// longest prefix of a valid sequence, except that an encoded surrogate goes as a whole.
func malformed(b []byte) int {
	lead := b[0]
	switch {
	case lead < 0xc2 || lead > 0xf4: // a continuation byte, or a lead that no sequence starts with
		return 1
	case lead < 0xe0: // the second byte is missing or wrong
		return 1
	case lead < 0xf0:
		if len(b) < 2 || !continuation(b[1]) || lead == 0xe0 && b[1] < 0xa0 {
			return 1
		}
		if len(b) > 2 && continuation(b[2]) { // would be well formed, so it is a surrogate
			return 3
		}
		return 2
	}
	if len(b) < 2 || !continuation(b[1]) || lead == 0xf0 && b[1] < 0x90 || lead == 0xf4 && b[1] > 0x8f {
		return 1
	}
	if len(b) < 3 || !continuation(b[2]) {
		return 2
	}
	return 3
}

func continuation(c byte) bool { return c&0xc0 == 0x80 }
