package kafka

import (
	"encoding/binary"
	"net"
)

// The brokers' addresses are in the answers to four APIs. What is around them goes
// on as it came, undecoded:
//
//	Metadata, DescribeCluster   the list of brokers, near the start
//	Produce v10+, Fetch v16+    NodeEndpoints, a tagged field at the very end, which is
//	                            there when a partition's leader has moved (KIP-951)
//
// DescribeQuorum has addresses too, but those of controllers, which no client of
// ours connects to.

// rewritten says whether answers may hold addresses of brokers.
func rewritten(key, version int16) bool {
	switch key {
	case 0:
		return version >= 10
	case 1:
		return version >= 16
	case 3, 60:
		return true
	}
	return false
}

// brokers is the shape of a list of brokers.
type brokers struct {
	flexible, rack bool
	more           int // bytes of a broker after its rack
}

// rewrite walks over a list of brokers and appends it to out, each with the address
// that clients are told, those without one left out.
func (b brokers) rewrite(c *conn, w *walk, out []byte) []byte {
	type kept struct {
		id        int32
		at        Place
		rest, end int // what follows the port, in walked
	}
	var all []kept
	local := c.localHost()
	w.array(b.flexible, func() {
		id := w.int32()
		w.str(b.flexible)
		w.int32()
		k := kept{id: id, rest: w.at}
		if b.rack {
			w.str(b.flexible)
		}
		w.skip(b.more)
		if b.flexible {
			w.tags()
		}
		k.end = w.at
		at, ok := c.srv.o.Gateway.address(id, local)
		if k.at = at; ok && w.err == nil {
			all = append(all, k)
		}
	})
	if w.err != nil {
		return out
	}
	came := w.walked()
	if b.flexible {
		out = binary.AppendUvarint(out, uint64(len(all)+1))
	} else {
		out = binary.BigEndian.AppendUint32(out, uint32(len(all)))
	}
	for _, k := range all {
		out = binary.BigEndian.AppendUint32(out, uint32(k.id))
		if b.flexible {
			out = binary.AppendUvarint(out, uint64(len(k.at.Host)+1))
		} else {
			out = binary.BigEndian.AppendUint16(out, uint16(len(k.at.Host)))
		}
		out = append(out, k.at.Host...)
		out = binary.BigEndian.AppendUint32(out, uint32(k.at.Port))
		out = append(out, came[k.rest:k.end]...)
	}
	return out
}

// localHost is the host that the client has connected to.
func (c *conn) localHost() string {
	host, _, _ := net.SplitHostPort(c.nc.LocalAddr().String())
	return host
}

// brokersHead walks over the start of Metadata or DescribeCluster, up to the end of the
// brokers, and appends it as clients are to see it.
func (c *conn) brokersHead(k *call, w *walk, out []byte) []byte {
	b := brokers{flexible: true, rack: true}
	if k.api.key == 3 {
		if b = (brokers{flexible: k.version >= 9, rack: k.version >= 1}); b.flexible {
			w.tags() // of the header
		}
		if k.version >= 3 {
			w.skip(4) // throttle time
		}
	} else {
		w.tags()
		w.skip(4 + 2)
		w.str(true) // error message
		if k.version >= 1 {
			w.skip(1) // endpoint type
		}
		w.str(true) // cluster id
		w.skip(4)   // controller
		if k.version >= 2 {
			b.more = 1 // whether it is fenced
		}
	}
	if w.err != nil {
		return out
	}
	return b.rewrite(c, w, append(out, w.walked()...))
}

// toTags walks over Produce or Fetch, up to the tags of the top level.
func toTags(k *call, w *walk) {
	w.tags() // of the header
	if k.api.key == 0 {
		w.array(true, func() {
			topic(w, k.version)
			w.array(true, func() {
				w.skip(4 + 2 + 8 + 8 + 8)
				w.array(true, func() { // records in error
					w.skip(4)
					w.str(true)
					w.tags()
				})
				w.str(true)
				w.tags()
			})
			w.tags()
		})
		w.skip(4) // throttle time
		return
	}
	w.skip(4 + 2 + 4)
	w.array(true, func() {
		topic(w, k.version)
		w.array(true, func() {
			w.skip(4 + 2 + 8 + 8 + 8)
			w.array(true, func() { // aborted transactions
				w.skip(8 + 8)
				w.tags()
			})
			w.skip(4)
			w.str(true) // the records
			w.tags()
		})
		w.tags()
	})
}

func topic(w *walk, version int16) {
	if version >= 13 {
		w.skip(16)
	} else {
		w.str(true)
	}
}
