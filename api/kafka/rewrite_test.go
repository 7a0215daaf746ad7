package kafka

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// dice make answers.
type dice struct{ *rand.Rand }

func (d dice) str() string { return strings.Repeat("s", d.IntN(20)) }

func (d dice) strp() *string {
	if d.IntN(2) == 0 {
		return nil
	}
	s := d.str()
	return &s
}

// tags are some that kmsg does not know.
func (d dice) tags(t *kmsg.Tags) {
	for i := range d.IntN(3) {
		t.Set(uint32(60+i), []byte(d.str()))
	}
}

// ids are of brokers; 7 has no port.
func (d dice) ids() []int32 { return []int32{1, 2, 3, 7}[:d.IntN(5)] }

func (d dice) metadata(r, want *kmsg.MetadataResponse) {
	r.ThrottleMillis, r.ClusterID, r.ControllerID = d.Int32(), d.strp(), d.Int32N(4)
	for range d.IntN(3) {
		t := kmsg.NewMetadataResponseTopic()
		t.Topic = kmsg.StringPtr(d.str())
		for range d.IntN(4) {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Leader, p.Replicas = d.Int32N(9), []int32{1, 2}
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	d.tags(&r.UnknownTags)
	*want = *r
	for _, id := range d.ids() {
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = id, d.str(), d.Int32(), d.strp()
		d.tags(&b.UnknownTags)
		r.Brokers = append(r.Brokers, b)
		if id != 7 {
			b.Host, b.Port = inPlace(id).Host, int32(inPlace(id).Port)
			want.Brokers = append(want.Brokers, b)
		}
	}
}

func (d dice) describeCluster(r, want *kmsg.DescribeClusterResponse) {
	r.ThrottleMillis, r.ErrorMessage, r.ClusterID, r.ControllerID = d.Int32(), d.strp(), d.str(), d.Int32N(4)
	d.tags(&r.UnknownTags)
	*want = *r
	for _, id := range d.ids() {
		b := kmsg.NewDescribeClusterResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack, b.IsFenced = id, d.str(), d.Int32(), d.strp(), d.IntN(2) == 0
		d.tags(&b.UnknownTags)
		r.Brokers = append(r.Brokers, b)
		if id != 7 {
			b.Host, b.Port = inPlace(id).Host, int32(inPlace(id).Port)
			want.Brokers = append(want.Brokers, b)
		}
	}
}

// fetch is an answer of about so many bytes.
func (d dice) fetch(r, want *kmsg.FetchResponse, size int, host func() string) {
	r.ThrottleMillis, r.SessionID = d.Int32(), d.Int32()
	for range d.IntN(4) {
		t := kmsg.NewFetchResponseTopic()
		d.tags(&t.UnknownTags)
		for range d.IntN(5) {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.HighWatermark = d.Int32(), d.Int64()
			for range d.IntN(3) {
				a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
				p.AbortedTransactions = append(p.AbortedTransactions, a)
			}
			if d.IntN(3) == 0 {
				p.CurrentLeader.LeaderID = 1
			}
			if d.IntN(4) > 0 {
				p.RecordBatches = make([]byte, d.IntN(size/8+1))
			}
			d.tags(&p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	d.tags(&r.UnknownTags)
	*want = *r
	if d.IntN(2) == 0 {
		return
	}
	for _, id := range d.ids() {
		b := kmsg.NewFetchResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = id, host(), d.Int32(), d.strp()
		d.tags(&b.UnknownTags)
		r.Brokers = append(r.Brokers, b)
		if id != 7 {
			b.Host, b.Port = inPlace(id).Host, int32(inPlace(id).Port)
			want.Brokers = append(want.Brokers, b)
		}
	}
}

func (d dice) produce(r, want *kmsg.ProduceResponse, size int, host func() string) {
	r.ThrottleMillis = d.Int32()
	for range d.IntN(4) {
		t := kmsg.NewProduceResponseTopic()
		d.tags(&t.UnknownTags)
		for range d.IntN(size/200 + 1) {
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.ErrorMessage = d.Int32(), d.strp()
			for range d.IntN(3) {
				e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
				e.ErrorMessage = d.strp()
				p.ErrorRecords = append(p.ErrorRecords, e)
			}
			if d.IntN(3) == 0 {
				p.CurrentLeader.LeaderID = 1
			}
			d.tags(&p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
	}
	d.tags(&r.UnknownTags)
	*want = *r
	if d.IntN(2) == 0 {
		return
	}
	for _, id := range d.ids() {
		b := kmsg.NewProduceResponseBroker()
		b.NodeID, b.Host, b.Port, b.Rack = id, host(), d.Int32(), d.strp()
		d.tags(&b.UnknownTags)
		r.Brokers = append(r.Brokers, b)
		if id != 7 {
			b.Host, b.Port = inPlace(id).Host, int32(inPlace(id).Port)
			want.Brokers = append(want.Brokers, b)
		}
	}
}

// seeds are fewer where the race detector makes each slow.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// through sends a request and returns the answer's body, where the broker's is body.
func (c *cluster) through(from *client, version int16, req kmsg.Request, body []byte) []byte {
	c.t.Helper()
	c.with(func() { c.body = func(kmsg.Request) []byte { return body } })
	corr := from.send(version, req)
	got, out, err := from.raw()
	if err != nil || got != corr {
		c.t.Fatalf("%s v%d: answer %d to %d: %v", kmsg.NameForKey(req.Key()), version, got, corr, err)
	}
	return out
}

// Where addresses are near the start, what clients get is what a broker with these
// addresses would have written, byte for byte.
func TestRewrittenHeads(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	from := c.client(2)
	for seed := range seeds(400) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		var req kmsg.Request = kmsg.NewPtrMetadataRequest()
		var came, want kmsg.Response
		var v int16
		if seed%4 == 0 {
			req, v = kmsg.NewPtrDescribeClusterRequest(), int16(d.IntN(3))
			a, b := kmsg.NewPtrDescribeClusterResponse(), kmsg.NewPtrDescribeClusterResponse()
			d.describeCluster(a, b)
			came, want = a, b
		} else {
			v = int16(d.IntN(14))
			a, b := kmsg.NewPtrMetadataResponse(), kmsg.NewPtrMetadataResponse()
			d.metadata(a, b)
			came, want = a, b
		}
		came.SetVersion(v)
		want.SetVersion(v)
		if got := c.through(from, v, req, encoded(came)); !bytes.Equal(got, encoded(want)) {
			t.Fatalf("seed %d: %s v%d:\ncame %+v\nwant %+v", seed, kmsg.NameForKey(req.Key()), v, came, want)
		}
	}
}

func produceRequest() *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks = 1
	return req
}

// Where they are at the end, the same holds for answers up to wholeAnswer. Longer
// ones keep their length: then the endpoints are there, and a field that makes up
// for the difference, or neither they nor any address of a broker's.
func TestRewrittenEndpoints(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	from := c.client(2)
	fits := map[bool]int{}
	for seed := range seeds(600) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		size := []int{100, 10_000, 100_000, 500_000, 3 << 20}[d.IntN(5)]
		host := d.str
		if seed%2 == 0 {
			long := 16 + d.IntN(200) // shorter and longer than gateway-1.example
			host = func() string { return strings.Repeat("h", long) }
		}
		var req kmsg.Request
		var came, want, got kmsg.Response
		var v int16
		if seed%3 == 0 {
			v = int16(9 + d.IntN(5))
			a, b := kmsg.NewPtrProduceResponse(), kmsg.NewPtrProduceResponse()
			d.produce(a, b, size, host)
			req, came, want = produceRequest(), a, b
		} else {
			v = int16(15 + d.IntN(4))
			a, b := kmsg.NewPtrFetchResponse(), kmsg.NewPtrFetchResponse()
			d.fetch(a, b, size, host)
			req, came, want = kmsg.NewPtrFetchRequest(), a, b
		}
		came.SetVersion(v)
		want.SetVersion(v)
		body := encoded(came)
		out := c.through(from, v, req, body)
		switch {
		case !rewritten(req.Key(), v) || !hasBrokers(came):
			if !bytes.Equal(out, body) {
				t.Fatalf("seed %d: %s v%d of %d bytes is not what came", seed, kmsg.NameForKey(req.Key()), v, len(body))
			}
			continue
		case len(body) <= wholeAnswer:
			if !bytes.Equal(out, encoded(want)) {
				t.Fatalf("seed %d: %s v%d of %d bytes:\ncame %+v\nwant %+v", seed, kmsg.NameForKey(req.Key()), v, len(body), came, want)
			}
			continue
		}
		if len(out) != len(body) {
			t.Fatalf("seed %d: %d bytes became %d", seed, len(body), len(out))
		}
		got = req.ResponseKind()
		if err := got.ReadFrom(out[1:]); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		fit := hasBrokers(got)
		fits[fit]++
		unpad(got)
		if !fit {
			dropBrokers(want)
		}
		if !bytes.Equal(encoded(got), encoded(want)) {
			t.Fatalf("seed %d: %s v%d of %d bytes:\ngot  %+v", seed, kmsg.NameForKey(req.Key()), v, len(body), got)
		}
	}
	if !testing.Short() && fits[true] < 10 || !testing.Short() && fits[false] < 10 {
		t.Errorf("endpoints of long answers fitted: %v", fits)
	}
}

func hasBrokers(r kmsg.Response) bool {
	switch r := r.(type) {
	case *kmsg.FetchResponse:
		return len(r.Brokers) > 0
	case *kmsg.ProduceResponse:
		return len(r.Brokers) > 0
	}
	return false
}

func dropBrokers(r kmsg.Response) {
	switch r := r.(type) {
	case *kmsg.FetchResponse:
		r.Brokers = nil
	case *kmsg.ProduceResponse:
		r.Brokers = nil
	}
}

// unpad takes away what makes up for a difference.
func unpad(r kmsg.Response) {
	tags := &kmsg.Tags{}
	var had *kmsg.Tags
	switch r := r.(type) {
	case *kmsg.FetchResponse:
		had = &r.UnknownTags
	case *kmsg.ProduceResponse:
		had = &r.UnknownTags
	}
	had.Each(func(tag uint32, value []byte) {
		if tag < 100 {
			tags.Set(tag, value)
		}
	})
	*had = *tags
}

// Every difference can be made up for but that of one byte.
func TestPadding(t *testing.T) {
	for n := range 20_000 {
		out := padTags([]tagged{{60, []byte("x")}}, n)
		if out == nil {
			if n >= 2 && n <= 1<<14 {
				t.Fatalf("%d bytes cannot be made up for", n)
			}
			continue
		}
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = 16
		empty := resp.AppendTo(nil)
		if err := resp.ReadFrom(append(empty[:len(empty)-1:len(empty)-1], out...)); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if want := len(appendTags(nil, []tagged{{60, []byte("x")}})) + n; len(out) != want || resp.UnknownTags.Len() != 2 {
			t.Fatalf("%d bytes: %d, not %d", n, len(out), want)
		}
	}
}

// A client that does not read a long answer that is walked over stops itself alone.
func TestGatewaySlowReader(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 16
	rt := kmsg.NewFetchResponseTopic()
	for range 64 {
		p := kmsg.NewFetchResponseTopicPartition()
		p.RecordBatches = make([]byte, 1<<20)
		rt.Partitions = append(rt.Partitions, p)
	}
	resp.Topics = append(resp.Topics, rt)
	body := encoded(resp)
	c.with(func() { c.body = func(kmsg.Request) []byte { return body } })
	slow := c.client(1)
	req := kmsg.NewPtrFetchRequest()
	slow.send(16, req)
	for range 100 {
		do[*kmsg.HeartbeatResponse](c.client(1), 4, beat("g"))
	}
	other := c.client(1)
	other.send(16, req)
	if _, out, err := other.raw(); err != nil || !bytes.Equal(out, body) {
		t.Fatal("the other client's answer is not what came", err)
	}
	if _, out, err := slow.raw(); err != nil || !bytes.Equal(out, body) {
		t.Fatal("the slow client's answer is not what came", err)
	}
}

// An answer of another shape ends its connection, and nothing of what cannot be
// read reaches the client as if it could.
func TestGatewayNonsense(t *testing.T) {
	c := newCluster(t, nil, 1, 2, 3)
	for seed := range uint64(200) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		body := make([]byte, d.IntN(2000))
		for i := range body {
			body[i] = byte(d.Uint32() & d.Uint32() & d.Uint32()) // mostly small numbers
		}
		c.with(func() { c.body = func(kmsg.Request) []byte { return body } })
		from := c.client(1)
		switch seed % 4 {
		case 0:
			from.send(16, kmsg.NewPtrFetchRequest())
		case 1:
			from.send(11, produceRequest())
		case 2:
			from.send(12, kmsg.NewPtrMetadataRequest())
		default:
			from.send(1, kmsg.NewPtrDescribeClusterRequest())
		}
		_, _, _ = from.raw() // an answer or the end, and both are right
		do[*kmsg.HeartbeatResponse](c.client(1), 4, beat("g"))
	}
}

// trickle reads a few bytes at a time.
type trickle struct {
	r io.Reader
	n int
}

func (t trickle) Read(b []byte) (int, error) { return t.r.Read(b[:min(len(b), t.n)]) }

// Whatever the bytes are, what is let go is what came, and nothing is read past the
// answer's end.
func FuzzWalk(f *testing.F) {
	d := dice{rand.New(rand.NewPCG(1, 4))}
	for range 8 {
		a, b := kmsg.NewPtrFetchResponse(), kmsg.NewPtrFetchResponse()
		d.fetch(a, b, 2000, d.str)
		a.Version = 16
		f.Add(encoded(a), int16(1), int16(16), uint8(9))
		p, q := kmsg.NewPtrProduceResponse(), kmsg.NewPtrProduceResponse()
		d.produce(p, q, 2000, d.str)
		p.Version = 11
		f.Add(encoded(p), int16(0), int16(11), uint8(200))
	}
	f.Fuzz(func(t *testing.T, body []byte, key, version int16, chunk uint8) {
		var out bytes.Buffer
		in := &frames{src: trickle{bytes.NewReader(slices.Concat(body, []byte("next"))), int(chunk) + 1}, act: new(atomic.Uint64)}
		w := &walk{in: in, out: &out, left: len(body), until: 100}
		toTags(&call{api: &api{key: key & 1}, version: version}, w)
		if w.err != nil {
			return
		}
		w.letGo(w.at)
		if w.err != nil || !bytes.Equal(out.Bytes(), body[:out.Len()]) || out.Len()+w.left != len(body) {
			t.Fatalf("%d bytes of %d let go, %d left: %v", out.Len(), len(body), w.left, w.err)
		}
	})
}

// BenchmarkWalk follows a Fetch of many small partitions, the dearest kind.
func BenchmarkWalk(b *testing.B) {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = 16
	rt := kmsg.NewFetchResponseTopic()
	for range 1000 {
		p := kmsg.NewFetchResponseTopicPartition()
		p.RecordBatches = make([]byte, 1000)
		rt.Partitions = append(rt.Partitions, p)
	}
	resp.Topics = append(resp.Topics, rt)
	body := encoded(resp)
	k := &call{api: &api{key: 1}, version: 16}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	in := &frames{act: new(atomic.Uint64)}
	for b.Loop() {
		in.src = bytes.NewReader(body)
		w := &walk{in: in, out: io.Discard, left: len(body), until: walkedChunk}
		toTags(k, w)
		w.letGo(w.at)
		in.skip(w.left)
		if w.err != nil {
			b.Fatal(w.err)
		}
	}
}
