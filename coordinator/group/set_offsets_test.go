package group

import (
	"fmt"
	"strconv"
	"strings"
)

// setOffsets takes o=t-0:5>7,t-1:->3,u-0:8>-, where - is no offset, and try=1.
func (s *script) setOffsets() {
	r := SetOffsets{Group: s.group(), Try: s.num("try", 0) > 0}
	for _, o := range s.list("o") {
		place, change, _ := strings.Cut(o, ":")
		from, to, _ := strings.Cut(change, ">")
		c := OffsetChange{Expected: s.offset(from), New: s.offset(to), LeaderEpoch: int32(s.num("epoch", -1)), Metadata: s.str("metadata", "")}
		c.Metadata += strings.Repeat("x", int(s.num("long", 0)))
		c.Topic, c.Partition = s.place(place)
		r.Changes = append(r.Changes, c)
	}
	s.h.do("set-offsets", r)
}

func (s *script) offset(text string) int64 {
	if text == "-" {
		return -1
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (h *harness) offsetsSet(r OffsetsSet) string {
	var b strings.Builder
	b.WriteString(code(r.Code))
	if r.State != "" {
		b.WriteString(" " + r.State)
	}
	for _, m := range r.Members {
		fmt.Fprintf(&b, " %s@%s", h.name(m.MemberID, ""), m.ClientHost)
	}
	if len(r.Read) > 0 {
		fmt.Fprintf(&b, " read: %s", strings.Join(r.Read, " "))
	}
	for _, d := range r.Differing {
		fmt.Fprintf(&b, " %s-%d is at %d", d.Topic, d.Partition, d.Expected)
	}
	return b.String()
}
