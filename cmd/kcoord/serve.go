package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/api/kafka/embedded"
	"github.com/kcoord/kcoord/api/kafka/upstream"
	"github.com/kcoord/kcoord/config"
)

type serveCommand struct {
	serverFlags
	Upstream *string `placeholder:"HOST:PORT" help:"The broker behind."`
}

// Run serves in front of a broker until the user ends it.
func (s *serveCommand) Run(ctx context.Context) error {
	load := func() (config.Config, error) { return s.load(flagSetting("upstream", s.Upstream)...) }
	c, err := load()
	if err != nil {
		return err
	}
	if c.Upstream == "" {
		return mistake{errors.New("which broker is kcoord to stand in front of? Say it with --upstream HOST:PORT (kcoord dev needs none)")}
	}
	if c.Data == "" {
		return mistake{errors.New("where is kcoord to keep its log? Say it with --data DIR")}
	}
	return runServer(ctx, c, load, nil)
}

type devCommand struct{ serverFlags }

// Run serves with the embedded data plane until the user ends it.
func (d *devCommand) Run(ctx context.Context) (err error) {
	c, err := d.load()
	if err != nil {
		return err
	}
	if !c.GatewayListen.Empty() {
		return mistake{errors.New("kcoord dev has its one data plane in process: leave gateway.listen out, or run kcoord serve")}
	}
	if c.Upstream != "" {
		return mistake{errors.New("kcoord dev has its data plane in process: leave upstream out, or run kcoord serve")}
	}
	if host, _, _ := net.SplitHostPort(c.Listen); c.Advertise == "" && (host == "" || net.ParseIP(host).IsUnspecified()) {
		return mistake{fmt.Errorf("clients cannot connect to %s: say with --advertise HOST:PORT by which address they reach this machine", c.Listen)}
	}
	if c.Data == "" {
		if c.Data, err = os.MkdirTemp("", "kcoord-dev-"); err != nil {
			return mistake{fmt.Errorf("no temporary folder (--data DIR names another one): %w", err)}
		}
		defer func() { err = errors.Join(err, os.RemoveAll(c.Data)) }()
	}
	return runServer(ctx, c, func() (config.Config, error) { return d.load() }, startEmbedded)
}

// startEmbedded starts the data plane of dev, which keeps its topics beside the
// coordinator's log.
func startEmbedded(c config.Config, advertised string, log zerolog.Logger) (*embedded.Broker, error) {
	folder := filepath.Join(c.Data, "dataplane")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	return embedded.Start(embedded.Options{
		Advertised: advertised, DataDir: folder, AutoCreateTopics: c.AutoCreateTopics, Partitions: c.NumPartitions, Log: log,
	})
}

// behind is how the broker is found.
func behind(c config.Config, advertised string, log zerolog.Logger) upstream.Options {
	o := upstream.Options{
		Addr: c.Upstream, Advertised: advertised, Log: log, Refresh: c.TopicsRefresh, MaxAge: c.TopicsMaxAge,
	}
	if !c.GatewayListen.Empty() {
		o.Seeds = c.Upstreams
		return o
	}
	if c.NodeID >= 0 {
		id := int32(c.NodeID)
		o.NodeID = &id
	}
	return o
}
