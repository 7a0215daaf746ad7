package main

import (
	"strings"
	"testing"

	"github.com/kcoord/kcoord/api/admin/adminpb"
)

// TestBar: it stays in one line of a terminal that is 80 columns wide, goes by records, and is full at the end alone.
func TestBar(t *testing.T) {
	var out strings.Builder
	b := &bar{out: &out}
	for _, tc := range []struct {
		r    *adminpb.Rewrite
		want string
	}{
		{&adminpb.Rewrite{UnderWay: true, Planned: 200, Rewritten: 40, Deleted: 10, Shards: 100, ShardsDone: 90}, "[#####...............]  25%  40 records rewritten, 10 deleted"},
		{&adminpb.Rewrite{UnderWay: true, Planned: 200, Rewritten: 300}, "[###################.]  99%  300 records rewritten, 0 deleted"},
		{&adminpb.Rewrite{Planned: 200, Rewritten: 199, Deleted: 1}, "[####################] 100%  199 records rewritten, 1 deleted"},
		{&adminpb.Rewrite{UnderWay: true, Shards: 4, ShardsDone: 1}, "[#####...............]  25%  0 records rewritten, 0 deleted"},
		{&adminpb.Rewrite{UnderWay: true, Planned: 2, Waiting: 1}, "[....................]   0%  waiting for transactions in 1 shard"},
		{&adminpb.Rewrite{UnderWay: true, Planned: 2, Problem: strings.Repeat("x", 99)}, "[....................]   0%  trying again: " + strings.Repeat("x", 35) + "…"},
	} {
		out.Reset()
		done, of := progress(tc.r)
		b.show(done, of, "%s", rewriting(tc.r))
		if got := strings.TrimPrefix(out.String(), "\r\x1b[K"); got != tc.want || len([]rune(got)) > 79 {
			t.Errorf("%q, not %q", got, tc.want)
		}
	}
	out.Reset()
	if b.clear(); out.String() != "\r\x1b[K" {
		t.Errorf("%q", out.String())
	}
}
