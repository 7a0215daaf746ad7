package config

import (
	"strings"
	"testing"
)

// What each text means was asked of java.util.Properties.
func TestPropertiesFormat(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"a=b", "a>b"},
		{"a = b ", "a>b "},
		{"a:b\nc d\ne\tf", "a>b c>d e>f"},
		{"a", "a>"},
		{"a=", "a>"},
		{"a==b", "a>=b"},
		{"a = : b", "a>: b"},
		{`a\=b=c`, "a=b>c"},
		{`a\ b c`, "a b>c"},
		{"# x\n  ! y \\\na=1", "a>1"},
		{"a=b\\\n   c\\\n# d", "a>bc# d"},
		{"a=b\\\\\nc=d", `a>b\ c>d`},
		{"a=\\\n\nb=1", "a> b>1"},
		{"a=1\r\nb=2\rc=3", "a>1 b>2 c>3"},
		{`a=\u0041\t\q\\`, "a>A\tq\\"},
		{"a=x\\", "a>x"},
		{" \f\ta=1", "a>1"},
	} {
		var got []string
		for _, l := range logicalLines(tc.text) {
			k, v := splitProperty(l.text)
			key, err := unescape(k)
			if err != nil {
				t.Fatal(err)
			}
			value, err := unescape(v)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, key+">"+value)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%q: got %q, want %q", tc.text, strings.Join(got, " "), tc.want)
		}
	}
}

func TestLinesAreCounted(t *testing.T) {
	for i, l := range logicalLines("\n# c\na=1\\\n2\nb=3") {
		if want := []int{3, 5}[i]; l.number != want {
			t.Errorf("%q on line %d, want %d", l.text, l.number, want)
		}
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("a=b\\\n c\n!x\n\\u0041:\\t")
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range logicalLines(text) {
			k, v := splitProperty(l.text)
			for _, s := range []string{k, v} {
				if got, err := unescape(s); err == nil && len(got) > len(s) {
					t.Errorf("%q became longer: %q", s, got)
				}
			}
		}
	})
}
