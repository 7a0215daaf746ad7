package recordbin

import "time"

// Millis is a time as records hold it: milliseconds since 1970, -1 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return t.UnixMilli()
}

// Instant is the time of a record's milliseconds; none for a negative number.
func Instant(ms int64) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
