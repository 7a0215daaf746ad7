package recordbin

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendJSONInt appends an integer; Kafka writes 64-bit ones as plain numbers too.
func AppendJSONInt[T int8 | int16 | uint16 | int32 | int64](dst []byte, v T) []byte {
	return strconv.AppendInt(dst, int64(v), 10)
}

// AppendJSONString appends a quoted string. Bytes that are not UTF-8 appear as U+FFFD.
func AppendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// AppendJSONNullString appends a quoted string or null.
func AppendJSONNullString(dst []byte, s NullString) []byte {
	if !s.Valid {
		return append(dst, "null"...)
	}
	return AppendJSONString(dst, s.String)
}

// AppendJSONBytes appends bytes as Kafka's JsonConverter does: base64, standard alphabet, padded.
func AppendJSONBytes(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}

// AppendJSONUUID appends a uuid in Kafka's text form.
func AppendJSONUUID(dst []byte, u UUID) []byte {
	dst = append(dst, '"')
	dst = base64.RawURLEncoding.AppendEncode(dst, u[:])
	return append(dst, '"')
}
