package metadataversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/kcoord/kcoord/groupmeta"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
	"github.com/kcoord/kcoord/txnlog"
	"pgregory.net/rapid"
)

// targets are every version as its line's first release, and where there is one the release that tolerates newer records.
func targets() []Target {
	var all []Target
	for v := range All() {
		t := TargetOf(v)
		all = append(all, t)
		if patch, ok := tolerant[v.Release()]; ok {
			t.Release.Patch = patch
			all = append(all, t)
		}
	}
	return all
}

// TestMatrix goes from every version to every one below it, with a store that holds every record version there is, and
// every damage. What a rewrite does depends on the target alone, so each different target is checked once; the plan of each
// pair must be the sum of what the rewrites lose.
func TestMatrix(t *testing.T) {
	store := lines(t)
	if testing.Short() || raced { // every record type and kind of damage is still there
		for i := range len(store) / 7 {
			store[i] = store[7*i]
		}
		store = store[:len(store)/7]
	}
	type key struct {
		Target
	}
	lost := map[key]map[string]int64{}
	pairs := 0
	for from := range All() {
		for _, to := range targets() {
			if to.Version > from {
				continue
			}
			pairs++
			to = to.At(Defaults(from).Lowered(to.Version))
			if lost[key{to}] == nil {
				lost[key{to}] = checkRewrites(t, to, store)
			}
			if from != Latest && from != to.Version { // the pass over the store is the same for each
				continue
			}
			p := NewPlanner(TargetOf(from), to)
			for i, r := range store {
				p.Visit(r.log, int32(i%50), r.key, r.value)
			}
			checkPlan(t, p.Plan(), lost[key{to}], int64(len(store)))
		}
	}
	t.Logf("%d pairs, %d different targets, %d records", pairs, len(lost), len(store))
}

// checkRewrites rewrites the store for a target and returns how many records lose each thing.
func checkRewrites(t *testing.T, to Target, store []stored) map[string]int64 {
	t.Helper()
	rw, sums := NewRewriter(to), map[string]int64{}
	reader := ReaderOf(to.Release)
	for _, r := range store {
		before := bytes.Clone(r.value)
		res := rw.Rewrite(nil, r.log, r.key, r.value)
		if !bytes.Equal(before, r.value) {
			t.Fatalf("%s: the stored value was changed", describeRecord(r))
		}
		if problem := check(rw, &reader, r, res); problem != "" {
			t.Errorf("to %s: %s: %s %v (%v): %s", to, describeRecord(r), res.Action, res.Lost.Names(), res.Problem, problem)
		}
		for f := range res.Lost.each {
			sums[f.name()]++
		}
	}
	return sums
}

// check is what every rewrite must hold.
func check(rw *Rewriter, reader *Reader, r stored, res Result) string {
	after := r.value
	if res.Action == Replace {
		after = res.Value
	}
	switch {
	case res.Action == Delete && r.value != nil && res.Lost&(WholeRecord|Damaged) == 0:
		return "a record goes that was not announced"
	case res.Action == Delete && r.value == nil && res.Lost != 0:
		return "a tombstone loses something"
	case res.Action != Delete && res.Lost&(WholeRecord|Damaged) != 0:
		return "the whole record was announced and is there"
	case res.Action == Keep && res.Lost != 0:
		return "something was announced and nothing changes"
	case res.Action == Delete:
		if rw.Reads(r.log, r.key, r.value) && r.value != nil && Quarantined != ourReader.Read(r.log, r.key, r.value) {
			return "the target could read it"
		}
		return ""
	}
	if o := reader.Read(r.log, r.key, after); o != Read && !(o == Skipped && ourReader.Read(r.log, r.key, r.value) == Skipped) {
		return "the target's release: " + o.String()
	}
	if !rw.Reads(r.log, r.key, after) && reader.Read(r.log, r.key, after) == Read {
		return "the target's features do not have it"
	}
	if o := ourReader.Read(r.log, r.key, after); o > Skipped && o > ourReader.Read(r.log, r.key, r.value) {
		return "kcoord: " + o.String()
	}
	if again := rw.Rewrite(nil, r.log, r.key, after); again.Action != Keep || again.Lost != 0 {
		return fmt.Sprintf("a second rewrite: %s %v", again.Action, again.Lost.Names())
	}
	if want := different(r, after); res.Lost != want {
		return fmt.Sprintf("differs in %v", want.Names())
	}
	return ""
}

var ourReader = Ours()

// different finds out what two values of a record differ in without asking the rewriter: by their JSON in the highest
// version, and by their unknown tagged fields.
func different(r stored, after []byte) Fields {
	if r.value == nil || bytes.Equal(r.value, after) {
		return 0
	}
	a, aTags := asJSON(r, r.value)
	b, bTags := asJSON(r, after)
	var f Fields
	walk(a, b, func(name string, of map[string]any) {
		if name == "rebalanceTimeout" && of["rebalanceTimeout"] == of["sessionTimeout"] {
			return // version 0 says as much
		}
		for one := range allFields.each {
			if one.name() == name {
				f |= one
				return
			}
		}
		panic("differs in " + name)
	})
	if aTags != bTags {
		f |= UnknownTags
	}
	return f
}

// asJSON reads a value in any version as one of the highest, in which all fields have a place.
func asJSON(r stored, value []byte) (map[string]any, int) {
	var text []byte
	var v any
	if r.log == TransactionsLog {
		tv := txnlog.NewTransactionLogValue()
		if _, err := tv.Decode(value); err != nil {
			panic(err)
		}
		text, v = tv.AppendJSON(nil, 1), tv
	} else {
		t, _ := groupmeta.TypeOfKey(r.key)
		if t == groupmeta.TypeLegacyOffsetCommit {
			t = groupmeta.TypeOffsetCommit
		}
		gv, _, err := groupmeta.DecodeValue(t, value)
		if err != nil {
			panic(err)
		}
		text, v = gv.AppendJSON(nil, t.HighestVersion()), gv
	}
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		panic(err)
	}
	if o, ok := v.(*groupmeta.OffsetCommitValue); ok && o.ExpireTimestamp != -1 { // not in version 4
		m["expireTimestamp"] = o.ExpireTimestamp
	}
	return m, countTags(reflect.ValueOf(v))
}

// countTags counts the bytes of unknown tagged fields anywhere in a value.
func countTags(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return countTags(v.Elem())
	case reflect.String:
		if v.Type().Name() == "UnknownTags" {
			return v.Len()
		}
	case reflect.Slice:
		n := 0
		for i := range v.Len() {
			n += countTags(v.Index(i))
		}
		return n
	case reflect.Struct:
		n := 0
		for i := range v.NumField() {
			n += countTags(v.Field(i))
		}
		return n
	}
	return 0
}

func walk(a, b any, differ func(name string, of map[string]any)) {
	switch a := a.(type) {
	case map[string]any:
		b := b.(map[string]any)
		for name, x := range a {
			y, there := b[name]
			_, nested := x.([]any)
			switch {
			case there && nested && y != nil:
				walk(x, y, differ)
			case !there || !reflect.DeepEqual(x, y):
				differ(name, a)
			}
		}
		for name := range b {
			if _, there := a[name]; !there {
				differ(name, b)
			}
		}
	case []any:
		b := b.([]any)
		if len(a) != len(b) {
			panic("an array became shorter")
		}
		for i := range a {
			if _, ok := a[i].(map[string]any); ok {
				walk(a[i], b[i], differ)
			} else if !reflect.DeepEqual(a[i], b[i]) {
				panic("an element differs")
			}
		}
	}
}

func checkPlan(t *testing.T, plan *Plan, want map[string]int64, records int64) {
	t.Helper()
	got := map[string]int64{}
	for _, l := range plan.Losses {
		got[l.What.name()] += l.Records
		if l.Records == 0 || len(l.Examples) == 0 || (l.Entities == 0) != (len(l.Top) == 0) {
			t.Errorf("from %s to %s: %+v", plan.From, plan.To, l)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("from %s to %s: the plan announces %v, the rewrites lose %v", plan.From, plan.To, got, want)
	}
	if plan.Records != records || plan.Lossy() != (plan.Err() != nil) || plan.Lossy() != (len(want) > 0) {
		t.Errorf("from %s to %s: %d records, lossy %t, %v", plan.From, plan.To, plan.Records, plan.Lossy(), plan.Err())
	}
	for v := plan.To.Version + 1; v <= plan.From.Version; v++ {
		if listed := slices.Contains(plan.Between, v); listed == v.IsBackwardCompatible() {
			t.Errorf("from %s to %s: %s is listed: %t", plan.From, plan.To, v, listed)
		}
	}
	if via := plan.Via != (Release{}); via != (plan.To.Version < plan.From.Version && !plan.To.Release.Tolerates()) || via && !plan.Via.Tolerates() {
		t.Errorf("from %s to %s by way of %s", plan.From, plan.To, plan.Via)
	}
}

func describeRecord(r stored) string {
	if r.line != nil {
		return fmt.Sprintf("%s v%d %s %q %x=%x", r.line.Type, r.line.Version, r.line.Case, r.line.Note, r.key, r.value)
	}
	return fmt.Sprintf("%s %x=%x", r.log, r.key, r.value)
}

// TestRandomRecords: the same for records with every field drawn, in any version, to any target.
func TestRandomRecords(t *testing.T) {
	all := targets()
	var types []groupmeta.Type
	for typ := range groupmeta.Type(32) {
		if typ.KeyName() != "" {
			types = append(types, typ)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.SampledFrom(all).Draw(t, "to")
		r := stored{log: rapid.SampledFrom([]Log{GroupLog, TransactionsLog}).Draw(t, "log")}
		if r.log == TransactionsLog {
			v := txnlog.NewTransactionLogValue()
			version := int16(rapid.IntRange(0, 2).Draw(t, "version"))
			recordtest.Draw(t, v, version > 0)
			if version == 0 {
				strip(v, 0)
				stripUnknown(v)
			}
			v.TransactionStatus, v.ClientTransactionVersion = v.TransactionStatus&7, v.ClientTransactionVersion&1
			if version == 0 {
				v.ClientTransactionVersion = 0
			}
			r.key, r.value = []byte{0, 0, 0, 1, 'x'}, must(v.AppendTo(nil, version))
		} else {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			version := int16(rapid.IntRange(0, int(typ.HighestVersion())+1).Draw(t, "version"))
			if typ == groupmeta.TypeLegacyOffsetCommit {
				version = 0
			}
			v := groupmeta.NewValue(typ)
			multi := typ == groupmeta.TypeOffsetCommit || typ == groupmeta.TypeGroupMetadata
			_, flexible := reflect.TypeOf(v).Elem().FieldByName("UnknownTags")
			recordtest.Draw(t, v, flexible && (!multi || version >= 4))
			r.key = append([]byte{byte(typ >> 8), byte(typ)}, make([]byte, 16)...)
			r.value = must(v.AppendTo(nil, version))
		}
		rw, reader := NewRewriter(to), ReaderOf(to.Release)
		res := rw.Rewrite(nil, r.log, r.key, r.value)
		if problem := check(rw, &reader, r, res); problem != "" {
			t.Fatalf("to %s: %s: %s %v (%v): %s", to, describeRecord(r), res.Action, res.Lost.Names(), res.Problem, problem)
		}
	})
}
