package kafka

import (
	"math"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// layouts are the requests that are decoded by kmsg and have lists or bytes, field by field. kmsg reads
// null as empty there; for Kafka it is malformed where the field may not be null, as all of these
// may not, and a list that a client has lost is not one that it meant to be empty: a SyncGroup would
// assign nothing, and a request to delete would be said to have been done.
//
// s is a string, b bytes, z, h, i and l a number of 1, 2, 4 and 8 bytes, u an id of 16, and […] a
// list of what is between. Behind a field may stand which versions have it: @3 from 3 on, @-3 up to 3.
var layouts = map[int16][]field{
	10: layout("s@-3 z@1 [s]@4"),                                // FindCoordinator
	11: layout("s i i@1 s s@5 s [s b] s@8"),                     // JoinGroup
	13: layout("s s@-2 [s s s@5]@3"),                            // LeaveGroup
	14: layout("s i s s@3 s@5 s@5 [s b]"),                       // SyncGroup
	15: layout("[s] z@3"),                                       // DescribeGroups
	16: layout("[s]@4 [s]@5"),                                   // ListGroups
	24: layout("[s l h z [s [i]]]@4 s@-3 l@-3 h@-3 [s [i]]@-3"), // AddPartitionsToTxn
	27: layout("[l h z [s [i]] i z@2]"),                         // WriteTxnMarkers
	28: layout("s s l h i@3 s@3 s@3 [s@-5 u@6 [i l i@2 s]]"),    // TxnOffsetCommit
	42: layout("[s]"),                                           // DeleteGroups
	47: layout("s [s [i]]"),                                     // OffsetDelete
	57: layout("i [s h z@-0 z@1] z@1"),                          // UpdateFeatures
	65: layout("[s]"),                                           // DescribeTransactions
	66: layout("[s] [l] l@1 s@2"),                               // ListTransactions
}

// field is one of a layout.
type field struct {
	kind     byte
	min, max int16
	of       []field // of a list's elements
}

// sizes are those of numbers and ids.
var sizes = map[byte]int{'z': 1, 'h': 2, 'i': 4, 'l': 8, 'u': 16}

func layout(text string) []field {
	fields, rest := fieldsOf(text)
	if rest != "" {
		panic("kafka: a layout goes on after its end: " + rest)
	}
	return fields
}

// fieldsOf reads fields up to the end of their list, and returns what follows.
func fieldsOf(text string) (fields []field, rest string) {
	for text != "" && text[0] != ']' {
		f := field{kind: text[0], max: math.MaxInt16}
		if text = text[1:]; f.kind == '[' {
			f.of, text = fieldsOf(text)
			text = strings.TrimPrefix(text, "]")
		}
		if after, ranged := strings.CutPrefix(text, "@"); ranged {
			number := after[:len(after)-len(strings.TrimLeft(after, "-0123456789"))]
			until, ends := strings.CutPrefix(number, "-")
			n, err := strconv.ParseInt(until, 10, 16)
			if err != nil {
				panic("kafka: a layout has no version where one should be: " + after)
			}
			if f.min = int16(n); ends {
				f.min, f.max = 0, int16(n)
			}
			text = after[len(number):]
		}
		fields = append(fields, f)
		text = strings.TrimPrefix(text, " ")
	}
	return fields, text
}

// walk goes over fields; d is bad where one is null that may not be.
func (d *decoder) walk(fields []field, version int16) {
	for i := range fields {
		f := &fields[i]
		switch {
		case version < f.min || version > f.max:
		case f.kind == 's': // which of them may be null, kmsg knows
			d.take(max(d.size(), 0))
		case f.kind == 'b':
			d.take(d.length(1))
		case f.kind == '[':
			for n := d.length(1); n > 0 && !d.bad; n-- {
				if d.walk(f.of, version); len(f.of) > 1 {
					d.tags()
				}
			}
		default:
			d.take(sizes[f.kind])
		}
	}
}

// complete says whether nothing is null in a request that may not be. kmsg has read it.
func complete(req kmsg.Request, body []byte) bool {
	d := decoder{b: body, flexible: req.IsFlexible()}
	d.walk(layouts[req.Key()], req.GetVersion())
	return !d.bad
}
