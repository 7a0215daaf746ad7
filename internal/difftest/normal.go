//go:build kafka

package difftest

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leftOut are fields that no client may rely on.
var leftOut = map[string]bool{
	"Version": true, "ThrottleMillis": true, "ErrorMessage": true, "UnknownTags": true, "Host": true, "Port": true, "StartTimestamp": true,
	"LastTimestamp": true,
}

// uuid ends a member id that was not named by an answer.
var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// render writes an answer so that those of both targets can be compared.
func (t *target) render(a answer, prefix string) string {
	if a.err != nil {
		return a.err.Error()
	}
	if l, ok := a.resp.(*kmsg.ListGroupsResponse); ok { // other sequences have groups, too
		own := l.Groups[:0]
		for _, g := range l.Groups {
			if strings.HasPrefix(g.Group, prefix) {
				own = append(own, g)
			}
		}
		l.Groups = own
	}
	if l, ok := a.resp.(*kmsg.ListTransactionsResponse); ok {
		l.TransactionStates = slices.DeleteFunc(l.TransactionStates, func(s kmsg.ListTransactionsResponseTransactionState) bool {
			return !strings.HasPrefix(s.TransactionalID, prefix)
		})
	}
	a.resp = compared(a.resp)
	var b strings.Builder
	t.value(&b, reflect.ValueOf(a.resp).Elem())
	return strings.ReplaceAll(b.String(), prefix, "")
}

func (t *target) value(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return
		}
		t.value(b, v.Elem())
	case reflect.String:
		fmt.Fprintf(b, "%q", t.name(v.String()))
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			raw := make([]byte, v.Len())
			reflect.Copy(reflect.ValueOf(raw), v)
			b.WriteString("0x" + hex.EncodeToString(raw))
			return
		}
		var parts []string
		for i := range v.Len() {
			var e strings.Builder
			t.value(&e, v.Index(i))
			parts = append(parts, e.String())
		}
		sort.Strings(parts)
		b.WriteString("[" + strings.Join(parts, " ") + "]")
	case reflect.Struct:
		b.WriteString("{")
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if epoch, is := v.Field(i).Interface().(int32); is && f.Name == "CoordinatorEpoch" {
				if epoch < 0 {
					b.WriteString("unmarked ")
				}
				continue
			}
			if leftOut[f.Name] || v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Pointer ||
				v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
				continue
			}
			b.WriteString(f.Name + ":")
			if id, is := v.Field(i).Interface().(int64); is && f.Name == "ProducerID" {
				b.WriteString(t.pid(id) + " ")
				continue
			}
			if raw, is := v.Field(i).Interface().([]byte); is && (f.Name == "Records" || f.Name == "RecordBatches") {
				b.WriteString(t.batches(raw) + " ")
				continue
			}
			if id, is := v.Field(i).Interface().([16]byte); is && f.Name == "TopicID" {
				b.WriteString(t.topicName(id) + " ")
				continue
			}
			t.value(b, v.Field(i))
			b.WriteString(" ")
		}
		b.WriteString("}")
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// topicName stands for a topic's id, which each Kafka makes itself.
func (t *target) topicName(id [16]byte) string {
	for name, of := range t.ids {
		if of == id {
			return "«" + name + "»"
		}
	}
	return "0x" + hex.EncodeToString(id[:])
}

func (t *target) name(s string) string {
	// Kafka replaces what is no UTF-8, kcoord keeps it.
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\ufffd", "")
	if n, ok := t.members[s]; ok {
		return "«" + n + "»"
	}
	if uuid.MatchString(s) {
		return "«new»"
	}
	if len(s) > 200 {
		return fmt.Sprintf("%s…%d", s[:20], len(s))
	}
	return s
}

// refusedCommit says whether a commit was of nothing that can be committed. In Kafka it may have made a group all the same,
// which is not described until its partition gets another record.
func refusedCommit(a answer) bool {
	switch r := a.resp.(type) {
	case *kmsg.OffsetCommitResponse:
		return !slices.ContainsFunc(r.Topics, func(t kmsg.OffsetCommitResponseTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetCommitResponseTopicPartition) bool { return p.ErrorCode == 0 })
		})
	case *kmsg.TxnOffsetCommitResponse:
		return !slices.ContainsFunc(r.Topics, func(t kmsg.TxnOffsetCommitResponseTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.TxnOffsetCommitResponseTopicPartition) bool { return p.ErrorCode == 0 })
		})
	}
	return false
}

// failed says whether a join or a sync is one that makes Kafka fail.
func failed(a answer) bool {
	switch r := a.resp.(type) {
	case *kmsg.JoinGroupResponse:
		return r.ErrorCode == kerr.UnknownServerError.Code
	case *kmsg.SyncGroupResponse:
		return r.ErrorCode == kerr.UnknownServerError.Code
	}
	return false
}

// learn takes from a join's answer what later ops refer to.
func (t *target) learn(o *op, a answer) {
	if a.err != nil {
		return
	}
	t.learnProducer(o, a)
	t.learnSequences(a)
	j, ok := a.resp.(*kmsg.JoinGroupResponse)
	if !ok {
		return
	}
	s := &t.slots[o.slot]
	if j.MemberID != "" && t.members[j.MemberID] == "" && uuid.MatchString(j.MemberID) {
		t.members[j.MemberID] = fmt.Sprintf("m%d", a.op)
	}
	if j.ErrorCode == 79 { // MEMBER_ID_REQUIRED
		s.member = j.MemberID
	}
	if j.ErrorCode == 0 {
		s.member, s.generation, s.protocol = j.MemberID, j.Generation, j.Protocol
	}
}

func reflectElem(v any) reflect.Value { return reflect.ValueOf(v).Elem() }
