package coordinator

import (
	"math"
	"unicode/utf8"

	"github.com/kcoord/kcoord/storage"
)

// ShardOf is the shard of a group or transactional id among n, as Kafka picks
// the partition of __consumer_offsets: by Java's hash of the string, which is
// over UTF-16 units.
func ShardOf(id string, n int) storage.ShardID {
	var h int32
	for i := 0; i < len(id); {
		if c := id[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(id[i:])
		i += size
		if r > math.MaxUint16 {
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	switch {
	case h == math.MinInt32: // whose absolute value does not exist; Kafka takes 0
		return 0
	case h < 0:
		h = -h
	}
	return storage.ShardID(int(h) % n)
}
