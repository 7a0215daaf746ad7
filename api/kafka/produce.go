package kafka

import "encoding/binary"

// peekProduce finds out whether a Produce is of a transaction, and whether it has a response:
// with acks=0 it has none. The transactional id comes first (v3+), then the acks.
func peekProduce(version int16, body []byte) (verdict, bool) {
	at, id := 0, -1
	switch {
	case version >= 9: // compact: the length plus one, 0 for null
		n, size := binary.Uvarint(body)
		if size <= 0 || n > peekBytes {
			return 0, false
		}
		id = int(n) - 1
		at = size + max(id, 0)
	case version >= 3:
		if len(body) < 2 {
			return 0, false
		}
		id = int(int16(binary.BigEndian.Uint16(body)))
		at = 2 + max(id, 0)
	}
	if len(body) < at+2 {
		return 0, false
	}
	silent := binary.BigEndian.Uint16(body[at:]) == 0
	switch {
	case id >= 0 && silent:
		return transactionalSilent, true
	case id >= 0:
		return transactional, true
	case silent:
		return passOnSilent, true
	}
	return passOn, true
}
