package recordjson_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/kcoord/kcoord/groupmeta/recordjson"
	"github.com/kcoord/kcoord/internal/recordbin/recordtest"
)

type answer struct {
	Type      string
	Version   int16
	JSON      json.RawMessage
	Hex       *string
	Ignored   bool
	Tombstone bool
	Error     string
}

func ask(t testing.TB, in []byte) (a answer) {
	t.Helper()
	out := recordjson.DescribeLine(in)
	if err := json.Unmarshal(out, &a); err != nil || bytes.ContainsAny(out, "\n\r") {
		t.Fatalf("%q got the answer %q: %v", in, out, err)
	}
	return a
}

func (a answer) outcome() string {
	switch {
	case a.Error != "":
		return recordtest.Exception
	case a.Ignored:
		return recordtest.Ignored
	case a.Tombstone:
		return recordtest.Tombstone
	}
	return recordtest.Decoded
}

func checkFixtures(t *testing.T, dir string) {
	for _, l := range recordtest.Load(t, dir) {
		a := ask(t, l.Raw)
		want, wantJSON, rewrite := l.Want()
		if a.outcome() != want {
			t.Errorf("%s: got %s %s, want %s", l.Note, a.outcome(), a.Error, want)
			continue
		}
		if want == recordtest.Exception {
			continue
		}
		if a.Type != l.Type || a.Version != l.Version && want != recordtest.Ignored {
			t.Errorf("%s v%d, %s: is called %s v%d", l.Type, l.Version, l.Note, a.Type, a.Version)
		}
		if want != recordtest.Decoded {
			continue
		}
		if wantJSON != nil && !recordtest.SameJSON(a.JSON, wantJSON) {
			t.Errorf("%s: got %s, want %s", l.Note, a.JSON, wantJSON)
		}
		if *a.Hex != rewrite && len(l.JSONAsHighest) == 0 { // what is normalised there is checked in groupmeta
			t.Errorf("%s: got %s, want %s", l.Note, *a.Hex, rewrite)
		}
	}
}

func TestKafkaFixturesSample(t *testing.T) {
	checkFixtures(t, filepath.Join("..", "testdata"))
	checkFixtures(t, filepath.Join("..", "..", "txnlog", "testdata"))
}

func TestKafkaFixtures(t *testing.T) {
	checkFixtures(t, recordtest.Shared(t, filepath.Join("..", "..")))
}

func TestDescribeLine(t *testing.T) {
	for in, want := range map[string]string{
		``:                                       `{"error":"not a line of JSON: unexpected end of JSON input"}`,
		`{`:                                      `{"error":"not a line of JSON: unexpected end of JSON input"}`,
		`[]`:                                     `{"error":"not a line of JSON: json: cannot unmarshal array into Go value of type recordjson.line"}`,
		`null`:                                   `{"error":"hex is missing"}`,
		`{}`:                                     `{"error":"hex is missing"}`,
		`{"type":"OffsetCommitKey","hex":"0g"}`:  `{"error":"hex: encoding/hex: invalid byte: U+0067 'g'"}`,
		`{"type":"OffsetCommitKey","hex":"000"}`: `{"error":"hex: encoding/hex: odd length hex string"}`,
		`{"type":"OffsetCommitKey","hex":""}`:    `{"error":"groupmeta: key: byte 0: prefix: needs 2 bytes, has 0"}`,
		`{"type":"GroupMetadataKey","hex":"0002000167"}`:                            `{"type":"GroupMetadataKey","version":2,"json":{"group":"g"},"hex":"0002000167"}`,
		`{"hex":"0002000167"}`:                                                      `{"type":"GroupMetadataKey","version":2,"json":{"group":"g"},"hex":"0002000167"}`,
		`{"type":"LegacyOffsetCommitKey","hex":"00000001670001740000000a"}`:         `{"type":"LegacyOffsetCommitKey","version":0,"json":{"group":"g","topic":"t","partition":10},"hex":"00000001670001740000000a"}`,
		`{"type":"TransactionLogKey","hex":"0000000174"}`:                           `{"type":"TransactionLogKey","version":0,"json":{"transactionalId":"t"},"hex":"0000000174"}`,
		`{"type":"x\"y","hex":"0009"}`:                                              `{"ignored":true,"type":"x\"y","version":9}`,
		`{"type":"Tombstone","hex":null,"key":"0002000167"}`:                        `{"tombstone":true,"type":"Tombstone","version":-1}`,
		`{"type":"Tombstone","hex":null,"key":"0000000174"}`:                        `{"tombstone":true,"type":"Tombstone","version":-1}`,
		`{"type":"ShareGroupMetadataValue","hex":"000000000001000000000000000200"}`: `{"type":"ShareGroupMetadataValue","version":0,"json":{"epoch":1,"metadataHash":2},"hex":"000000000001000000000000000200"}`,
		`{"type":"SomeValue","hex":"0000"}`:                                         `{"error":"a value without its key, and the type does not name a known record"}`,
		`{"type":"GroupMetadataValue","hex":"0000","key":"00"}`:                     `{"error":"groupmeta: key: byte 0: prefix: needs 2 bytes, has 1"}`,
		`{"type":"GroupMetadataValue","hex":"00","key":"0009"}`:                     `{"ignored":true,"type":"GroupMetadataValue","version":9}`,
	} {
		if got := string(recordjson.DescribeLine([]byte(in))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// FuzzDescribeLine: every line has an answer, and a record's answer asked about again is the same.
func FuzzDescribeLine(f *testing.F) {
	for _, dir := range []string{filepath.Join("..", "testdata"), filepath.Join("..", "..", "txnlog", "testdata")} {
		for _, l := range recordtest.Load(f, dir) {
			f.Add(l.Raw)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a := ask(t, in)
		if a.outcome() != recordtest.Decoded {
			return
		}
		var q struct{ Key *string }
		_ = json.Unmarshal(in, &q)
		again, _ := json.Marshal(map[string]any{"type": a.Type, "hex": a.Hex, "key": q.Key})
		if b := ask(t, again); b.Error != "" || !recordtest.SameJSON(a.JSON, b.JSON) || *a.Hex != *b.Hex {
			t.Fatalf("%s\n%+v, then\n%+v", in, a, b)
		}
	})
}
