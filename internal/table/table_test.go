package table

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAligned(t *testing.T) {
	table := New("GROUP", ">OFFSET", "MEMBER")
	table.Row("orders", "7", "one")
	table.Row("ä", "12345678")
	want := `
GROUP     OFFSET  MEMBER
orders         7  one
ä       12345678  -
`
	var b strings.Builder
	if err := table.Print(&b, 80); err != nil || "\n"+b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestNothingIsWiderThanAskedFor(t *testing.T) {
	table := New("GROUP", "TOPIC", ">PARTITION", "MEMBER")
	table.Row(strings.Repeat("g", 60)+"1", "t", "0", "consumer-1-"+strings.Repeat("0", 40)+"-end")
	var b strings.Builder
	if err := table.Print(&b, 80); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "g1 ") || !strings.Contains(b.String(), "-end") {
		t.Errorf("the ends are lost:\n%s", b.String())
	}
}

// What counts is how wide a terminal shows it.
func TestWideCharacters(t *testing.T) {
	table := New("GROUP", "STATE")
	table.Row("日本語の消費者グループ", "Empty")
	table.Row("cafe\u0301", "Empty")
	table.Row("a-group-that-is-not-short", "Stable")
	want := `
GROUP                  STATE
日本語の消…者グループ  Empty
` + "cafe\u0301" + `                   Empty
a-group-th…-not-short  Stable
`
	var b strings.Builder
	if err := table.Print(&b, 29); err != nil || "\n"+b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestNamesAreNoCommands(t *testing.T) {
	table := New("GROUP")
	table.Row("a\nb\x1b[31m\x00c d\u202e日")
	var b strings.Builder
	if err := table.Print(&b, 0); err != nil {
		t.Fatal(err)
	}
	if want := "GROUP\n" + `a\nb\x1b[31m\x00c d\u202e日` + "\n"; b.String() != want {
		t.Errorf("%q, not %q", b.String(), want)
	}
}
