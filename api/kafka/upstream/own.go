package upstream

import (
	"context"
	"fmt"
	"net"
)

// LeadsTo says whether a connection of this process leads to a listener of it. To reach its
// own address a machine takes that address, so that both ends are the same.
func LeadsTo(nc net.Conn, l net.Addr) bool {
	to, is := nc.RemoteAddr().(*net.TCPAddr)
	from, isFrom := nc.LocalAddr().(*net.TCPAddr)
	at, isAt := l.(*net.TCPAddr)
	if !is || !isFrom || !isAt || to.Port != at.Port {
		return false
	}
	return to.IP.Equal(at.IP) || at.IP.IsUnspecified() && (to.IP.Equal(from.IP) || to.IP.IsLoopback())
}

// elsewhere refuses connections that have led back to kcoord. Passed on to itself, a request
// would go round until there are no file descriptors left.
func elsewhere(dial func(context.Context, string) (net.Conn, error), own func(net.Conn) bool) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		nc, err := dial(ctx, addr)
		if err != nil || !own(nc) {
			return nc, err
		}
		nc.Close()
		return nil, fmt.Errorf("%s is kcoord's own address, and not a broker's: say with upstream where the broker itself listens; behind a gateway, brokers advertise their own addresses", addr)
	}
}
