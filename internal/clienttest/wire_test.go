package clienttest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire is a connection that sends one request at a time and never sends one again, so
// that it is known whether a request was sent, and that it was sent once.
type wire struct {
	conn      net.Conn
	formatter *kmsg.RequestFormatter
	sent      int32
}

func dial(address, client string) (*wire, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{conn: c, formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))}, nil
}

// ask returns an error when it is not known what became of the request.
func (w *wire) ask(req kmsg.Request) (kmsg.Response, error) {
	w.sent++
	if _, err := w.conn.Write(w.formatter.AppendRequest(nil, req, w.sent)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(w.conn, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w.conn, body); err != nil {
		return nil, err
	}
	if id := int32(binary.BigEndian.Uint32(body)); id != w.sent {
		return nil, fmt.Errorf("the answer is to request %d, not %d", id, w.sent)
	}
	body = body[4:]
	resp := req.ResponseKind()
	if resp.IsFlexible() {
		body = body[1:] // no tags in the header
	}
	return resp, resp.ReadFrom(body)
}
