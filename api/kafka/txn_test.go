package kafka

import (
	"encoding/binary"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
	"github.com/kcoord/kcoord/storage/memlog"
)

// withNode puts a real coordinator behind a stage.
func withNode(t *testing.T, change ...func(*Options, *coordinator.Options)) *stage {
	t.Helper()
	b := memlog.New(coordinator.Index)
	var node *coordinator.Node
	s := newStage(t, yes, func(o *Options) {
		ids, markers := o.Upstream.ProducerIDs(true), o.Upstream.Markers()
		no := coordinator.Options{
			Backend: b, Shards: 4, TxnShards: 4, Log: zerolog.Nop(), ProducerIDs: ids, Brokers: markers,
			Txn: txn.Config{MaxTimeout: time.Hour, AbortInterval: time.Second, TransactionVersion: 2, FenceStale: true},
			Group: group.Config{
				MinSessionTimeout: time.Second, MaxSessionTimeout: time.Hour, MaxSize: 10, MetadataMaxChars: 4096,
				Retention: time.Hour, RetentionCheckInterval: time.Hour,
			},
		}
		o.Embedded = true
		for _, c := range change {
			c(o, &no)
		}
		var err error
		if node, err = coordinator.Open(no); err != nil {
			t.Fatal(err)
		}
		o.Coordinator, o.Transactions, o.OffsetsPartitions = node, node, node.Partitions()
		t.Cleanup(func() {
			node.Close()
			ids.Close()
			markers.Close()
			b.Close()
		})
	})
	return s
}

// begin initialises a transactional id.
func begin(c *client, id string) *kmsg.InitProducerIDResponse {
	c.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 60_000, -1, -1
	resp := do[*kmsg.InitProducerIDResponse](c, 5, req)
	if resp.ErrorCode != 0 {
		c.t.Fatalf("InitProducerId of %s: %d", id, resp.ErrorCode)
	}
	return resp
}

// records are a batch, as far as anybody looks.
func records(p *kmsg.InitProducerIDResponse, transactional bool) []byte {
	b := make([]byte, 70)
	b[16] = 2
	if transactional {
		b[22] = 0x10
	}
	binary.BigEndian.PutUint64(b[43:], uint64(p.ProducerID))
	binary.BigEndian.PutUint16(b[51:], uint16(p.ProducerEpoch))
	return b
}

// broker answers Produce on connections that are passed on, and keeps what it got.
type broker struct {
	t    *testing.T
	mu   sync.Mutex
	got  []*kmsg.ProduceRequest
	raw  [][]byte
	open []net.Conn
	mute bool          // it answers nothing
	came chan struct{} // what it does not answer has come
	left sync.WaitGroup
}

func (s *stage) fakeBroker(t *testing.T) *broker {
	b := &broker{t: t, came: make(chan struct{}, 9)}
	f := func() (net.Conn, error) {
		here, there := net.Pipe()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open = append(b.open, there)
		b.left.Go(func() { b.serve(there) })
		return here, nil
	}
	s.passTo.Store(&f)
	t.Cleanup(func() {
		s.passTo.Store(nil)
		b.hangUp()
	})
	return b
}

// silence has it answer nothing from now on.
func (b *broker) silence() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mute = true
}

// hangUp ends the connections, and waits until the broker has left them.
func (b *broker) hangUp() {
	b.mu.Lock()
	for _, nc := range b.open {
		nc.Close()
	}
	b.mu.Unlock()
	b.left.Wait()
}

func (b *broker) serve(nc net.Conn) {
	defer nc.Close()
	for {
		body, err := readFrame(nc)
		if err != nil {
			return
		}
		var h header
		n := h.parse(body)
		if h.key != 0 {
			b.t.Errorf("the broker got API %d", h.key)
			return
		}
		req := kmsg.NewPtrProduceRequest()
		req.Version = h.version
		rest := body[n:]
		if req.IsFlexible() {
			rest = rest[1:]
		}
		if err := req.ReadFrom(rest); err != nil {
			b.t.Errorf("the broker got a Produce that does not parse: %v", err)
			return
		}
		b.mu.Lock()
		b.got, b.raw = append(b.got, req), append(b.raw, body)
		mute := b.mute
		b.mu.Unlock()
		if mute {
			b.came <- struct{}{}
		}
		if req.Acks == 0 || mute {
			continue
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.BaseOffset = p.Partition, 42
				rp.CurrentLeader.LeaderID = 7
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		out := make([]byte, 4)
		out = kbin.AppendInt32(out, h.correlation)
		if resp.IsFlexible() {
			out = append(out, 0)
		}
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

func (b *broker) last() (*kmsg.ProduceRequest, []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) == 0 {
		return nil, nil
	}
	return b.got[len(b.got)-1], b.raw[len(b.raw)-1]
}

func produce(id *string, recs []byte, topics ...kmsg.ProduceRequestTopic) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis = id, -1, 1000
	for _, t := range topics {
		for i := range t.Partitions {
			t.Partitions[i].Records = recs
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

func to(name string, id [16]byte, partitions ...int32) kmsg.ProduceRequestTopic {
	t := kmsg.ProduceRequestTopic{Topic: name, TopicID: id}
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p})
	}
	return t
}

// A real broker gets version 11, whatever the client's, and the client its own back.
func TestProduceTowardsKafka(t *testing.T) {
	s := withNode(t, func(o *Options, _ *coordinator.Options) { o.Embedded = false })
	id := s.topic("t")
	c := s.client()
	x := "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	for v := int16(12); v <= 13; v++ {
		recs := records(p, true)
		req := produce(&x, recs, to("t", id, 0, 1))
		got := do[*kmsg.ProduceResponse](c, v, req)
		behind, _ := b.last()
		if behind == nil || behind.Version != 11 || *behind.TransactionID != x || behind.Topics[0].Topic != "t" || !reflect.DeepEqual(behind.Topics[0].Partitions[1].Records, recs) {
			t.Fatalf("v%d: the broker got %+v", v, behind)
		}
		want := kmsg.ProduceResponseTopic{Topic: "t"}
		if v == 13 {
			want = kmsg.ProduceResponseTopic{TopicID: id}
		}
		if len(got.Topics) != 1 || got.Topics[0].Topic != want.Topic || got.Topics[0].TopicID != want.TopicID {
			t.Fatalf("v%d: %+v", v, got)
		}
		for _, at := range got.Topics[0].Partitions {
			if at.ErrorCode != 0 || at.BaseOffset != 42 || at.CurrentLeader.LeaderID != 7 {
				t.Errorf("v%d: %+v", v, at)
			}
		}
	}
	if d := describe(c, x); d.State != "Ongoing" || !reflect.DeepEqual(d.Topics[0].Partitions, []int32{0, 1}) {
		t.Errorf("%+v", d)
	}
	// As old clients send it, it goes on byte for byte.
	for v := int16(3); v <= 11; v++ {
		req := produce(&x, records(p, true), to("t", id, 0))
		corr := c.send(v, req)
		if got := recv[*kmsg.ProduceResponse](c, corr, req); got.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Errorf("v%d: %+v", v, got)
		}
		if behind, raw := b.last(); behind.Version != v || !reflect.DeepEqual(raw, frame(corr, req)[4:]) {
			t.Errorf("v%d: the broker got %x", v, raw)
		}
	}
}

// The embedded broker gets at least version 12.
func TestProduceTowardsTheEmbeddedBroker(t *testing.T) {
	s := withNode(t)
	id := s.topic("t")
	c := s.client()
	x := "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = x, p.ProducerID, p.ProducerEpoch
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	if got := do[*kmsg.AddPartitionsToTxnResponse](c, 3, add); got.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	for v := int16(3); v <= 13; v++ {
		got := do[*kmsg.ProduceResponse](c, v, produce(&x, records(p, true), to("t", id, 0)))
		if behind, _ := b.last(); behind.Version != max(v, 12) || got.Topics[0].Partitions[0].BaseOffset != 42 {
			t.Errorf("v%d: the broker got v%d, the client %+v", v, behind.Version, got)
		}
	}
}

// What the transaction does not take does not reach the broker.
func TestProduceThatIsRefused(t *testing.T) {
	s := withNode(t, func(o *Options, _ *coordinator.Options) { o.Embedded = false })
	id := s.topic("t")
	c := s.client()
	x, nobody := "x", "nobody"
	p := begin(c, x)
	old := *p
	p = begin(c, x)
	b := s.fakeBroker(t)
	for _, tc := range []struct {
		version int16
		id      *string
		by      *kmsg.InitProducerIDResponse
		want    int16
	}{
		{13, &x, &old, 47}, {12, &x, &old, 47}, {11, &x, &old, 47}, {9, &x, &old, 47}, // INVALID_PRODUCER_EPOCH
		{12, &nobody, p, 49}, {11, &nobody, p, 49}, // INVALID_PRODUCER_ID_MAPPING
		{11, &x, p, 120}, {10, &x, p, 48}, {3, &x, p, 48}, // not added: TRANSACTION_ABORTABLE, INVALID_TXN_STATE
	} {
		got := do[*kmsg.ProduceResponse](c, tc.version, produce(tc.id, records(tc.by, true), to("t", id, 0, 1)))
		if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 2 || got.Topics[0].Partitions[1].ErrorCode != tc.want {
			t.Errorf("v%d of %s: %+v, want %d", tc.version, *tc.id, got, tc.want)
		}
	}
	if behind, _ := b.last(); behind != nil {
		t.Errorf("the broker got %+v", behind)
	}
	// An id that no topic has is answered here, the rest goes on.
	got := do[*kmsg.ProduceResponse](c, 13, produce(&x, records(p, true), to("", [16]byte{9}, 0), to("", id, 0)))
	if behind, _ := b.last(); behind == nil || len(behind.Topics) != 1 || behind.Topics[0].Topic != "t" {
		t.Errorf("the broker got %+v", behind)
	}
	codes := map[[16]byte]int16{}
	for _, t := range got.Topics {
		codes[t.TopicID] = t.Partitions[0].ErrorCode
	}
	if !reflect.DeepEqual(codes, map[[16]byte]int16{id: 0, {9}: 100}) {
		t.Errorf("%+v", got)
	}
	// Without an answer to tell it, the connection ends.
	silent := produce(&x, records(&old, true), to("t", id, 0))
	silent.Acks = 0
	c.send(12, silent)
	c.closed()
}

// Records that are not of a transaction need none, whatever the request says.
func TestProduceOfPlainRecords(t *testing.T) {
	s := withNode(t, func(o *Options, _ *coordinator.Options) { o.Embedded = false })
	id := s.topic("t")
	c := s.client()
	x := "x"
	p := begin(c, x)
	b := s.fakeBroker(t)
	if got := do[*kmsg.ProduceResponse](c, 12, produce(&x, records(p, false), to("t", id, 0))); got.Topics[0].Partitions[0].BaseOffset != 42 {
		t.Errorf("%+v", got)
	}
	req := produce(nil, records(p, true), to("t", id, 0))
	corr := c.send(13, req)
	if got := recv[*kmsg.ProduceResponse](c, corr, req); got.Topics[0].Partitions[0].BaseOffset != 42 {
		t.Errorf("%+v", got)
	}
	if _, raw := b.last(); !reflect.DeepEqual(raw, frame(corr, req)[4:]) {
		t.Errorf("a Produce without transactional id was touched: %x", raw)
	}
}

func describe(c *client, id string) kmsg.DescribeTransactionsResponseTransactionState {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	return do[*kmsg.DescribeTransactionsResponse](c, 0, req).TransactionStates[0]
}

// With transaction.version 1 clients are told so, and that they must add partitions themselves.
func TestTransactionVersion1(t *testing.T) {
	s := withNode(t, func(o *Options, no *coordinator.Options) { o.TransactionVersion, no.Txn.TransactionVersion = 1, 1 })
	got := do[*kmsg.ApiVersionsResponse](s.client(), 4, asker())
	if r := ranges(got)[0]; r != [2]int16{3, 11} {
		t.Errorf("Produce %v", r)
	}
	for _, f := range got.FinalizedFeatures {
		if f.Name == "transaction.version" && f.MaxVersionLevel != 1 {
			t.Errorf("%+v", f)
		}
	}
}

func TestTransactionsAreAnnounced(t *testing.T) {
	s := withNode(t)
	got := do[*kmsg.ApiVersionsResponse](s.client(), 4, asker())
	for key, want := range map[int16][2]int16{22: {0, 5}, 24: {0, 5}, 25: {0, 4}, 26: {0, 5}, 27: {1, 2}, 28: {0, 6}, 65: {0, 0}, 66: {0, 2}} {
		if ranges(got)[key] != want {
			t.Errorf("API %d: %v", key, ranges(got)[key])
		}
	}
	finalized := map[string]int16{}
	for _, f := range got.FinalizedFeatures {
		finalized[f.Name] = f.MaxVersionLevel
	}
	if finalized["transaction.version"] != 2 || got.FinalizedFeaturesEpoch < 0 {
		t.Errorf("%+v", got)
	}
}
