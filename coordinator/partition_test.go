package coordinator

import "testing"

func TestShardOf(t *testing.T) {
	// Java: Math.abs(s.hashCode()) % 50, with 0 for Integer.MIN_VALUE.
	for _, c := range []struct {
		id   string
		hash int // Java's String.hashCode
	}{
		{"", 0},
		{"g", 103},
		{"my-group", -1906497762},
		{"polygenelubricants", -2147483648},
		{"gruppe-ä-漢字", -1165604016},
		{"clef 𝄞", 858616960},
	} {
		want := c.hash
		if want < 0 {
			want = -want
		}
		if c.hash == -2147483648 {
			want = 0
		}
		if got := ShardOf(c.id, 50); int(got) != want%50 {
			t.Errorf("ShardOf(%q) = %d, want %d", c.id, got, want%50)
		}
	}
}
