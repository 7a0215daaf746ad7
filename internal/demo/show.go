package demo

import (
	"context"
	"fmt"
	"strconv"

	"github.com/kcoord/kcoord/internal/table"
)

// show asks kcoord and the data plane, not the members, how the group stands.
func (d *demo) show(ctx context.Context) error {
	d.title("How the group stands, as kcoord tells it.\n")
	lags, err := d.admin.Lag(ctx, group)
	if err != nil {
		return fmt.Errorf("demo: asking for the lag: %w", err)
	}
	g := lags[group]
	if err := g.Error(); err != nil {
		return fmt.Errorf("demo: asking for the lag: %w", err)
	}
	t := table.New("GROUP", "TOPIC", ">PARTITION", ">OFFSET", ">LAG", "MEMBER")
	var offsets, lag int64
	for _, l := range g.Lag.Sorted() {
		if l.Member == nil {
			return fmt.Errorf("demo: partition %d has no member", l.Partition)
		}
		offsets, lag = offsets+l.Commit.At, lag+l.Lag
		t.Row(group, l.Topic, strconv.Itoa(int(l.Partition)), strconv.FormatInt(l.Commit.At, 10), strconv.FormatInt(l.Lag, 10), l.Member.MemberID)
	}
	if err := t.Print(d.out, 80); err != nil {
		return err
	}
	if g.State != "Stable" || t.Len() != partitions || offsets != d.written || lag != 0 {
		return fmt.Errorf("demo: the group is %s, with %d of %d records committed and a lag of %d", g.State, offsets, d.written, lag)
	}
	return nil
}
