package upstream

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AskOnce asks a broker one thing, in the version that the request has, over a
// connection of its own.
func AskOnce(ctx context.Context, dial func(context.Context) (net.Conn, error), req kmsg.Request, resp kmsg.Response) error {
	l := &link{dial: dial, timeout: markerTimeout, told: func(*kmsg.ApiVersionsResponse) {}}
	defer l.close()
	if err := l.open(ctx); err != nil {
		return err
	}
	return l.ask(ctx, req, resp)
}
