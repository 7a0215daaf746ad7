package recordbin

import "encoding/base64"

// UUID is Kafka's 16-byte uuid, most significant byte first. The zero value is Kafka's default, "no uuid".
type UUID [16]byte

// String writes it as Kafka does: base64 with the URL alphabet, no padding (22 characters).
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// NullString is a nullable string; its zero value is null. It is a struct and not a *string so that decoding allocates
// no more than the bytes, and so that records can be compared with ==.
type NullString struct {
	String string // empty while Valid is false
	Valid  bool
}

// Some is a string that is there, be it empty.
func Some(s string) NullString { return NullString{String: s, Valid: true} }

// FromPtr takes nil for null, as package kmsg does.
func FromPtr(s *string) NullString {
	if s == nil {
		return NullString{}
	}
	return Some(*s)
}

// Ptr is nil for null, as package kmsg wants it.
func (s NullString) Ptr() *string {
	if !s.Valid {
		return nil
	}
	return &s.String
}
