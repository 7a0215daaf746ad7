package kafka

import (
	"encoding/binary"
	"slices"
)

// nodeEndpoints is the tag of brokers' addresses in Produce and Fetch.
const nodeEndpoints = 0

// tagged is a tagged field.
type tagged struct {
	tag   int
	value []byte
}

// endpoints walks over the tags of the top level, to the end of the answer, and
// returns them with the addresses as clients are to see them.
func (c *conn) endpoints(w *walk) (all []tagged) {
	for n := w.uvarint(); n > 0 && w.err == nil; n-- {
		tag, size := w.uvarint(), w.uvarint()
		at := w.at
		var value []byte
		if tag == nodeEndpoints {
			value = brokers{flexible: true, rack: true}.rewrite(c, w, nil)
		} else {
			w.skip(size)
			if w.err == nil {
				value = slices.Clone(w.walked()[at:])
			}
		}
		if w.err == nil && w.at != at+size {
			w.err = errMismatch
		}
		all = append(all, tagged{tag, value})
	}
	if w.err == nil && w.at != w.left {
		w.err = errMismatch
	}
	return all
}

func appendTags(out []byte, all []tagged) []byte {
	out = binary.AppendUvarint(out, uint64(len(all)))
	for _, t := range all {
		out = binary.AppendUvarint(out, uint64(t.tag))
		out = binary.AppendUvarint(out, uint64(len(t.value)))
		out = append(out, t.value...)
	}
	return out
}

// fitTags makes tags of exactly size bytes. An answer's length is its first word, and
// a long one is on its way before its end, with the tags, is here. Shorter
// addresses than the broker's are made up for by a field that no client knows.
// With longer ones the endpoints are left out: the client then asks for Metadata
// to find the new leader, as all did before KIP-951.
func fitTags(all []tagged, size int) []byte {
	out := appendTags(nil, all)
	if len(out) == size {
		return out
	}
	if out = padTags(all, size-len(out)); out != nil {
		return out
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t tagged) bool { return t.tag == nodeEndpoints })
	return padTags(all, size-len(appendTags(nil, all)))
}

// padTags adds a field that takes n bytes; nil where that cannot be.
func padTags(all []tagged, n int) []byte {
	tag := 100
	if len(all) > 0 {
		tag = max(tag, all[len(all)-1].tag+1)
	}
	out := appendTags(nil, all)
	if n < 2 || n > 1<<14 || len(all) > 100 || tag > 127 {
		return nil
	}
	out[0]++
	out = append(out, byte(tag))
	if n-2 < 1<<7 {
		return append(append(out, byte(n-2)), make([]byte, n-2)...)
	}
	// Two bytes, of which the second may be a 0 that is not needed.
	return append(append(out, byte(n-3)|0x80, byte((n-3)>>7)), make([]byte, n-3)...)
}
