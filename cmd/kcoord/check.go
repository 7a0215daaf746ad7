package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/kcoord/kcoord/internal/check"
	"github.com/kcoord/kcoord/internal/table"
)

type checkCommand struct {
	Upstream  string `required:"" placeholder:"HOST:PORT" help:"The broker behind, at its own listener."`
	Listen    string `placeholder:"HOST:PORT" default:"127.0.0.1:9092" help:"Where clients will connect to kcoord (${default})."`
	Advertise string `placeholder:"HOST:PORT" help:"The address that they will be told (that of --listen)."`
	Data      string `placeholder:"DIR" help:"The folder for the coordinator's log."`
}

// Run says what would not work, before anything is changed.
func (c *checkCommand) Run(ctx context.Context) error {
	if strings.Contains(c.Upstream, ",") {
		return mistake{fmt.Errorf("--upstream %s: name one broker, and check the others after it", c.Upstream)}
	}
	if !isHostPort(c.Upstream) {
		return mistake{fmt.Errorf("--upstream %s: say it as HOST:PORT", c.Upstream)}
	}
	found := check.All(ctx, check.Options{Upstream: c.Upstream, Listen: c.Listen, Advertise: c.Advertise, Data: c.Data})
	fails := 0
	for _, f := range found {
		lines := strings.Split(wrapped(table.Plain(f.Text), 74), "\n")
		fmt.Printf("%-4s  %s\n", f.Level, strings.Join(lines, "\n      "))
		if f.Level == check.Fail {
			fails++
		}
	}
	if fails > 0 {
		return fmt.Errorf("%d of %d checks failed", fails, len(found))
	}
	return nil
}
