package upstream

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versionsAge is how old the broker's versions and features may be.
const versionsAge = 30 * time.Second

// maxAnswer bounds an answer of the broker: 512 MB of Metadata would be some
// ten million partitions.
const maxAnswer = 512 << 20

// link is the connection that questions go over, opened again after each
// failure. It belongs to Broker.run.
type link struct {
	dial            func(ctx context.Context) (net.Conn, error)
	timeout         time.Duration
	told            func(*kmsg.ApiVersionsResponse) // the broker's versions
	settled         func(ok bool)                   // told how questions end; nil: nobody wants to know
	nc              net.Conn
	corr            int32
	asked           time.Time // when the versions were asked for
	metadataVersion int16     // the version of Metadata that both sides know
}

// link is the one that the Broker asks over.
func (b *Broker) link() *link {
	l := &link{dial: b.Dial, timeout: b.o.Timeout, told: b.versions.Store}
	if b.gateway() {
		at := ""
		l.dial = func(ctx context.Context) (nc net.Conn, err error) {
			nc, at, err = b.dialAny(ctx)
			return nc, err
		}
		l.settled = func(ok bool) {
			if !ok {
				at = ""
			}
			b.settle(at)
		}
	}
	return l
}

func (l *link) close() {
	if l.nc != nil {
		l.nc.Close()
		l.nc = nil
	}
}

// metadata asks for topics by name and by id; for all of them when both are nil.
func (l *link) metadata(ctx context.Context, names []string, ids [][16]byte) (*kmsg.MetadataResponse, error) {
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Version = l.metadataVersion
	req.AllowAutoTopicCreation = false
	for i := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &names[i]
		req.Topics = append(req.Topics, t)
	}
	for _, id := range ids {
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = id
		req.Topics = append(req.Topics, t)
	}
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	if err := l.ask(ctx, req, resp); err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, fmt.Errorf("upstream: Metadata: %w", err)
	}
	return resp, nil
}

// open connects where there is no connection, and asks for versions where the
// known ones have become old.
func (l *link) open(ctx context.Context) error {
	if l.nc == nil {
		nc, err := l.dial(ctx)
		if err != nil {
			return fmt.Errorf("upstream: connecting: %w", err)
		}
		l.nc, l.asked = nc, time.Time{}
	}
	if time.Since(l.asked) < versionsAge {
		return nil
	}
	var resp *kmsg.ApiVersionsResponse
	var err error
	for _, version := range []int16{4, 3, 0} { // v4 shows all features, v3 some, v0 none
		resp, err = l.askVersions(ctx, version)
		if err != nil || resp.ErrorCode != kerr.UnsupportedVersion.Code {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		l.close()
		return fmt.Errorf("upstream: ApiVersions: %w", err)
	}
	l.metadataVersion = 4 // the first that can leave topics uncreated
	for _, k := range resp.ApiKeys {
		if k.ApiKey == 3 {
			l.metadataVersion = min(k.MaxVersion, 12)
		}
	}
	l.told(resp)
	l.asked = time.Now()
	return nil
}

func (l *link) askVersions(ctx context.Context, version int16) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, "kcoord", "1"
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	return resp, l.ask(ctx, req, resp)
}

// ask sends a request and reads its response. Whatever goes wrong ends the
// connection: what comes over it later would belong to nobody.
func (l *link) ask(ctx context.Context, req kmsg.Request, resp kmsg.Response) (err error) {
	nc := l.nc
	defer func() {
		if err != nil {
			l.close()
			err = fmt.Errorf("upstream: asking %s for %s: %w", nc.RemoteAddr(), kmsg.NameForKey(req.Key()), err)
		}
		if l.settled != nil {
			l.settled(err == nil)
		}
	}()
	if err := nc.SetDeadline(time.Now().Add(l.timeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()

	l.corr++
	name := "kcoord"
	buf := make([]byte, 4, 256)
	buf = kbin.AppendInt16(buf, req.Key())
	buf = kbin.AppendInt16(buf, req.GetVersion())
	buf = kbin.AppendInt32(buf, l.corr)
	buf = kbin.AppendNullableString(buf, &name)
	if req.IsFlexible() {
		buf = append(buf, 0)
	}
	buf = req.AppendTo(buf)
	binary.BigEndian.PutUint32(buf, uint32(len(buf)-4))
	if _, err := nc.Write(buf); err != nil {
		return err
	}
	body, err := l.response(nc)
	if err != nil {
		return err
	}
	// An ApiVersions that the broker does not know is answered in version 0.
	if v, ok := resp.(*kmsg.ApiVersionsResponse); ok && len(body) >= 2 && int16(binary.BigEndian.Uint16(body)) == kerr.UnsupportedVersion.Code {
		v.ErrorCode = kerr.UnsupportedVersion.Code
		return nil
	}
	if resp.IsFlexible() && resp.Key() != 18 {
		if len(body) == 0 || body[0] != 0 {
			return fmt.Errorf("the response's header has tags that nobody asked for")
		}
		body = body[1:]
	}
	return resp.ReadFrom(body)
}

// response reads a frame and checks whose it is.
func (l *link) response(nc net.Conn) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > maxAnswer {
		return nil, fmt.Errorf("a response of %d bytes", size)
	}
	if corr := int32(binary.BigEndian.Uint32(head[4:])); corr != l.corr {
		return nil, fmt.Errorf("a response to request %d, not %d", corr, l.corr)
	}
	body, err := io.ReadAll(io.LimitReader(nc, int64(size)-4))
	if err == nil && len(body) < int(size)-4 {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}

func hostPort(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
