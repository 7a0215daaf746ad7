package kafka

import "encoding/binary"

// peekProduce finds out whether a Produce has a response: with acks=0 it has none.
// Acks come first, after the transactional id (v3+).
func peekProduce(version int16, body []byte) (verdict, bool) {
	at := 0
	switch {
	case version >= 9: // compact: the length plus one, 0 for null
		n, size := binary.Uvarint(body)
		if size <= 0 || n > peekBytes {
			return 0, false
		}
		at = size + max(int(n)-1, 0)
	case version >= 3:
		if len(body) < 2 {
			return 0, false
		}
		at = 2 + max(int(int16(binary.BigEndian.Uint16(body))), 0)
	}
	if len(body) < at+2 {
		return 0, false
	}
	if binary.BigEndian.Uint16(body[at:]) == 0 {
		return passOnSilent, true
	}
	return passOn, true
}
