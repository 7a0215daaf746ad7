// Package recordtest holds what the tests of the generated codecs share: Kafka's fixtures, random records, and a measure
// of what a decoded record costs.
package recordtest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Line is one record with what a real Kafka makes of it. The fixtures' own README describes the fields.
type Line struct {
	Type          string
	Version       int16
	Hex           *string
	Key           *string
	JSON          json.RawMessage
	JSONAsHighest json.RawMessage
	Case          string
	Note          string
	Kafka         struct {
		Outcome            string
		Rewrite            string
		RewriteException   json.RawMessage
		TransactionLogRead struct{ Outcome string }
	}

	Raw []byte `json:"-"`
}

// Shared is the folder of all fixtures, which lies beside the checkout and not in it. The test is skipped where it is
// absent, but not on CI, where that would hide that nothing was tested.
func Shared(t testing.TB, root string) string {
	dir := filepath.Join(root, "..", "shared", "fixtures", "records")
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is absent, and CI is set", dir)
	}
	t.Skipf("%s is absent: only the sample in testdata was tested", dir)
	return ""
}

// Load reads the .jsonl files of dir, and fails when there are none.
func Load(t testing.TB, dir string) []Line {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	var lines []Line
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for raw := range bytes.Lines(b) {
			l := Line{Raw: bytes.TrimSpace(raw)}
			if err := json.Unmarshal(l.Raw, &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("no fixtures in %s", dir)
	}
	return lines
}

// TransactionLog says whether the line is of __transaction_state. A tombstone's type does not say.
func (l *Line) TransactionLog() bool {
	return strings.Contains(l.Type, "TransactionLog") || strings.HasPrefix(l.Note, "TransactionLogKey")
}

// Bytes is the record and, for values, its key; nil stands for null.
func (l *Line) Bytes(t testing.TB) (record, key []byte) {
	return unhex(t, l.Hex), unhex(t, l.Key)
}

func unhex(t testing.TB, s *string) []byte {
	if s == nil {
		return nil
	}
	b, err := hex.DecodeString(*s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Outcomes, as the fixtures name them.
const (
	Decoded   = "decoded"
	Tombstone = "tombstone"
	Ignored   = "ignored"
	Exception = "exception"
)

// Want is what kcoord makes of the line: its outcome, the JSON, and the bytes it writes back.
//
// It is Kafka's own answer except where kcoord differs deliberately. Keep docs/records.md in step with this function.
func (l *Line) Want() (outcome string, wantJSON json.RawMessage, rewrite string) {
	outcome, wantJSON = l.Kafka.Outcome, l.JSON
	if l.Kafka.TransactionLogRead.Outcome == Ignored && strings.HasPrefix(l.Type, "UnknownTransactionLog") {
		return Ignored, nil, "" // by the code that loads the log; the serde throws for the same record
	}
	if len(l.JSONAsHighest) > 0 { // KIP-915
		outcome, wantJSON = Decoded, l.JSONAsHighest
	}
	if l.Note == "OffsetCommitKey v1 with OffsetCommitValue v5" { // the same, in cross.jsonl
		outcome, wantJSON = Decoded, nil
	}
	if outcome != Decoded {
		return outcome, nil, ""
	}
	rewrite = *l.Hex
	if l.Kafka.Rewrite != "" {
		rewrite = l.Kafka.Rewrite
	}
	return outcome, wantJSON, rewrite
}

// SameJSON compares two texts by what they mean, numbers by their digits.
func SameJSON(a, b []byte) bool {
	var v, w any
	for _, x := range []struct {
		text []byte
		into *any
	}{{a, &v}, {b, &w}} {
		d := json.NewDecoder(bytes.NewReader(x.text))
		d.UseNumber()
		if d.Decode(x.into) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v, w)
}
