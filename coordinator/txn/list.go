package txn

import (
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/txn/state"
)

// stateUnknown is what List says of an id in quarantine: a name that Kafka's
// clients have for a state that they do not know.
const stateUnknown = "Unknown"

// Pattern compiles a ListTransactions pattern (RE2, of whole ids); nil lets all pass.
// code is INVALID_REGULAR_EXPRESSION, or none.
func Pattern(s *string) (re *regexp.Regexp, code int16) {
	if s == nil || *s == "" {
		return nil, none
	}
	if _, err := regexp.Compile(*s); err != nil { // alone: "a)(b" must not pair with what is put around it
		return nil, invalidRegularExpression
	}
	return regexp.MustCompile(`\A(?:` + *s + `)\z`), none
}

// list tells of all ids of the shard, in memory or not. States that are none are
// told back, each once; if there is no other, nothing passes.
func (m *Machine) list(r List) Response {
	resp := kmsg.NewPtrListTransactionsResponse()
	var states []state.Status
	for _, name := range r.States {
		if s, is := state.StatusOf(name); is {
			states = append(states, s)
		} else if !slices.Contains(resp.UnknownStateFilters, name) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, name)
		}
	}
	for _, id := range m.sorted() {
		e := m.dir[id]
		switch {
		case !e.stored,
			len(r.States) > 0 && (e.quarantined || !slices.Contains(states, e.status)),
			len(r.ProducerIDs) > 0 && !slices.Contains(r.ProducerIDs, int64(e.producer)),
			r.LongerThan >= 0 && !e.began(m, r),
			r.Pattern != nil && !r.Pattern.MatchString(id):
			continue
		}
		l := kmsg.NewListTransactionsResponseTransactionState()
		l.TransactionalID, l.ProducerID, l.TransactionState = id, int64(e.producer), e.status.String()
		if e.quarantined {
			l.TransactionState = stateUnknown
		}
		resp.TransactionStates = append(resp.TransactionStates, l)
	}
	return resp
}

// began says whether what is listed of an id began longer ago than asked for. What never began did
// so a millisecond before 1970, as in Kafka.
func (e *entry) began(m *Machine, r List) bool {
	started := e.started
	if started.IsZero() {
		started = time.UnixMilli(-1)
	}
	return m.now.Sub(started) > r.LongerThan
}
