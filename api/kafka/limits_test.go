package kafka

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// corpus is a file a line: a name, then the bytes that a client sends.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/malformed/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus: ", err)
	}
	m := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m[filepath.Base(f)] = b
	}
	return m
}

// What does not parse ends its own connection with a log line that names the
// client, after the answers to what came before.
func TestMalformed(t *testing.T) {
	s := newStage(t, yes)
	other := s.client()
	for name, bytes := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			s.srv.bad = rate{}
			c := s.client()
			before := beat("g")
			corr := c.send(4, before)
			if _, err := c.nc.Write(bytes); err != nil {
				t.Fatal(err)
			}
			recv[*kmsg.HeartbeatResponse](c, corr, before)
			c.closed()
			line := s.log.await(t, c.nc.LocalAddr().String())
			if strings.HasPrefix(name, "length-") && !strings.Contains(line, `"bytes":`) {
				t.Error("no size in ", line)
			}
			do[*kmsg.HeartbeatResponse](other, 4, beat("g"))
		})
	}
}

// Who speaks something else than Kafka's protocol is told of in the log in words.
func TestOtherProtocols(t *testing.T) {
	s := newStage(t, yes)
	for first, want := range map[string]string{
		"\x16\x03\x01\x02\x00\x01\x00":         "TLS",
		"GET /metrics HTTP/1.1\r\n\r\n":        "HTTP",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":     "gRPC",
		"\x16\x00\x00\x00 only a large length": "socket.request.max.bytes\"",
	} {
		c := s.client()
		if _, err := c.nc.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
		c.closed()
		if line := s.log.await(t, c.nc.LocalAddr().String()); !strings.Contains(line, want) {
			t.Errorf("%q: %s", first, line)
		}
	}
}

// Metrics and log lines name APIs as Kafka does.
func TestNamesAreKafkas(t *testing.T) {
	for key, want := range map[int16]string{
		0: "Produce", 17: "SaslHandshake", 22: "InitProducerId", 29: "DescribeAcls", 30: "CreateAcls", 31: "DeleteAcls", 36: "SaslAuthenticate",
		45: "AlterPartitionReassignments", 46: "ListPartitionReassignments", 50: "DescribeUserScramCredentials", 51: "AlterUserScramCredentials",
	} {
		if got := apiName(key); got != want {
			t.Errorf("%d is %s, not %s", key, got, want)
		}
	}
}

// A length alone allocates nothing.
func TestHugeLength(t *testing.T) {
	s := newStage(t, yes)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 {
		c := s.client()
		// Just below the limit, so that it is waited for.
		c.nc.Write(append(binary.BigEndian.AppendUint32(nil, 100<<20), 0, 8, 0, 9, 0, 0, 0, 1, 0, 0))
	}
	do[*kmsg.HeartbeatResponse](s.client(), 4, beat("g"))
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d MB were allocated for 50 lengths", got>>20)
	}
}

func TestTooManyConnections(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"max.connections":        func(o *Options) { o.MaxConnections = 2 },
		"max.connections.per.ip": func(o *Options) { o.MaxConnectionsPerIP = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, yes, limit)
			a, b := s.client(), s.client()
			do[*kmsg.HeartbeatResponse](a, 4, beat("g"))
			do[*kmsg.HeartbeatResponse](b, 4, beat("g"))
			s.client().closed()
			s.log.await(t, "too many connections")
			a.nc.Close()
			for { // until the server has noticed
				c := s.client()
				c.send(4, beat("g"))
				if _, _, err := c.raw(); err == nil {
					break
				}
			}
			do[*kmsg.HeartbeatResponse](b, 4, beat("g"))
		})
	}
}

// Who says nothing, half a frame, or reads nothing is closed; who waits for a join is not.
func TestIdle(t *testing.T) {
	s := newStage(t, yes, func(o *Options) { o.MaxIdle = 150 * time.Millisecond })
	silent, half, joining := s.client(), s.client(), s.client()
	half.nc.Write([]byte{0, 0, 0, 50, 0})
	join := joinOf("g")
	corr := joining.send(9, join)
	p := <-s.coord.parked
	silent.closed()
	half.closed()
	if log := s.log.await(t, "connections.max.idle.ms"); strings.Contains(log, `"level":"warn"`) {
		t.Errorf("the log is\n%s", log)
	}
	p.reply(kmsg.NewPtrJoinGroupResponse(), nil)
	recv[*kmsg.JoinGroupResponse](joining, corr, join)
}

// What the broker does not answer ends as it would at a broker that hears nothing: for who
// waits, for who is gone, and for who has sent half of it.
func TestIdleBroker(t *testing.T) {
	s := newStage(t, yes, func(o *Options) { o.MaxIdle = 150 * time.Millisecond })
	b := s.passOnTo()
	waiting, gone, half := s.client(), s.client(), s.client()
	for _, c := range []*client{waiting, gone} {
		c.nc.Write(headed(3, 9, 0))
		<-b.came
	}
	gone.nc.Close()
	half.nc.Write(headed(3, 9, make([]byte, 1000)...)[:500])
	waiting.closed()
	half.closed()
	for gone := time.After(20 * time.Second); len(s.srv.connections()) > 0; {
		select {
		case <-gone:
			t.Fatalf("%d connections are left", len(s.srv.connections()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Thousands of connections that say nothing, or half a frame, cost others nothing.
func TestSilentConnections(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	n = min(n, int(files.Cur-200)/2)
	s := newStage(t, yes)
	working := s.client()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	conns := make([]net.Conn, n)
	var dials sync.WaitGroup
	for w := range 8 {
		dials.Go(func() {
			for i := w; i < n; i += 8 {
				nc, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				if conns[i] = nc; i%2 == 0 {
					nc.Write([]byte{0x7f, 0, 0})
				}
			}
		})
	}
	dials.Wait()
	defer func() {
		for _, nc := range conns {
			if nc != nil {
				nc.Close()
			}
		}
	}()
	do[*kmsg.HeartbeatResponse](s.client(), 4, beat("g")) // the last is accepted
	do[*kmsg.HeartbeatResponse](working, 4, beat("g"))
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse) / int64(n)
	t.Logf("%d connections, %d bytes each (both ends)", n, each)
	if each > 16<<10 {
		t.Errorf("%d bytes a silent connection", each)
	}
}

// Limits that change count for what comes, and keep what there is.
func TestLimitsChange(t *testing.T) {
	s := newStage(t, yes)
	a, b := s.client(), s.client()
	do[*kmsg.HeartbeatResponse](a, 4, beat("g"))
	do[*kmsg.HeartbeatResponse](b, 4, beat("g"))
	s.srv.Limit(Limits{MaxConnections: 1})
	s.client().closed()
	do[*kmsg.HeartbeatResponse](a, 4, beat("g"))
	s.srv.Limit(Limits{MaxRequestBytes: 10})
	do[*kmsg.HeartbeatResponse](b, 4, beat("g")) // which has been waited for under the limit before
	b.send(4, beat("g"))
	b.closed()
	s.log.await(t, "socket.request.max.bytes")
}

// Sockets are kept back, those to the broker too, and may be taken again.
func TestSocketsAreKeptBack(t *testing.T) {
	s := newStage(t, yes, func(o *Options) { o.MaxSockets = 3 })
	b := s.passOnTo()
	a, other := s.client(), s.client()
	a.nc.Write(headed(3, 9, 0))
	<-b.came // and has a socket of its own
	do[*kmsg.HeartbeatResponse](other, 4, beat("g"))
	s.client().closed()
	s.log.await(t, "too many connections for the limit of open files")
	other.nc.Write(headed(3, 9, 0))
	other.closed()
	a.nc.Close()
	nc := b.conn(t)
	nc.Close() // the answer that a waited for
	for late := time.After(20 * time.Second); s.srv.sockets.open.Load() > 0; {
		select {
		case <-late:
			t.Fatalf("%d sockets are still counted", s.srv.sockets.open.Load())
		case <-time.After(5 * time.Millisecond):
		}
	}
	do[*kmsg.HeartbeatResponse](s.client(), 4, beat("g"))
}
