package embedded

import (
	"context"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// producer writes transactional records as its coordinator, which is outside, has it.
type producer struct {
	t  *testing.T
	cl *kgo.Client
	id int64
}

func (p *producer) request(req kmsg.Request) kmsg.Response {
	p.t.Helper()
	resp, err := p.cl.Request(context.Background(), req)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp
}

// write writes one record, and returns its offset.
func (p *producer) write(partition int32, epoch int16, sequence int32, value string) int64 {
	p.t.Helper()
	r := kmsg.Record{Value: []byte(value)}
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 0x10, ProducerID: p.id, ProducerEpoch: epoch, FirstSequence: sequence,
		NumRecords: 1, Records: r.AppendTo(nil),
	}
	b.Length = int32(len(b.AppendTo(nil)) - 12)
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], castagnoli))
	req := kmsg.NewPtrProduceRequest()
	id := "x"
	req.TransactionID, req.Acks, req.TimeoutMillis = &id, -1, 1000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: b.AppendTo(nil)}}}}
	at := p.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if at.ErrorCode != 0 {
		p.t.Fatalf("Produce of %s: %d", value, at.ErrorCode)
	}
	return at.BaseOffset
}

func (p *producer) marker(partition int32, epoch int16, commit bool) {
	p.t.Helper()
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.Committed = p.id, epoch, commit
	m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "t", Partitions: []int32{partition}}}
	req.Markers = append(req.Markers, m)
	if code := p.request(req).(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0].ErrorCode; code != 0 {
		p.t.Fatalf("WriteTxnMarkers: %d", code)
	}
}

// stable is the last stable offset.
func (p *producer) stable(partition int32) int64 {
	p.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 1
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Partition: partition, Timestamp: -1, CurrentLeaderEpoch: -1}}}}
	return p.request(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
}

func (b *Broker) open(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers("127.0.0.1:1"), kgo.MaxVersions(kversion.V4_0_0()),
		kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx) }),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func startIn(t *testing.T, dir string) *Broker {
	t.Helper()
	b, err := Start(Options{Advertised: "127.0.0.1:1", DataDir: dir, AutoCreateTopics: true, Partitions: 2, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestRecovery: killed or ended, the broker goes on with what its coordinator thinks of its
// transactions: what is open is open, what has its marker is over, and a batch that is sent again
// is not written twice.
func TestRecovery(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *Broker, dir string) string{
		"killed": func(t *testing.T, _ *Broker, dir string) string { // as its folder is then
			to := t.TempDir()
			if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			cut(t, filepath.Join(to, "partitions", "t-1", "0.dat"))
			return to
		},
		"ended": func(_ *testing.T, b *Broker, dir string) string { b.Close(); return dir },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := startIn(t, dir)
			p := &producer{t: t, cl: b.open(t)}
			create := kmsg.NewPtrCreateTopicsRequest()
			ct := kmsg.NewCreateTopicsRequestTopic()
			ct.Topic, ct.NumPartitions, ct.ReplicationFactor = "t", 2, 1
			create.Topics = append(create.Topics, ct)
			p.request(create)
			init := kmsg.NewPtrInitProducerIDRequest()
			id := "kcoord-1"
			init.TransactionalID, init.TransactionTimeoutMillis, init.ProducerID, init.ProducerEpoch = &id, 1<<31-1, -1, -1
			p.id = p.request(init).(*kmsg.InitProducerIDResponse).ProducerID

			p.write(0, 0, 0, "committed")
			p.marker(0, 1, true)
			p.write(0, 1, 0, "aborted")
			p.marker(0, 2, false)
			open := p.write(0, 2, 0, "open, then committed")
			p.write(1, 2, 0, "open, then aborted")

			b = startIn(t, end(t, b, dir))
			p.cl = b.open(t)
			if s0, s1 := p.stable(0), p.stable(1); s0 != open || s1 != 0 {
				t.Errorf("last stable offsets %d and %d, not %d and 0", s0, s1, open)
			}
			if again := p.write(0, 2, 0, "open, then committed"); again != open {
				t.Errorf("written again at %d, and it was at %d", again, open)
			}
			p.marker(0, 3, true)
			p.marker(1, 3, false)
			cl := b.open(t, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
			var got []string
			for markers := 0; markers < 4; {
				cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
					if r.Attrs.IsControl() {
						markers++
					} else {
						got = append(got, string(r.Value))
					}
				})
			}
			if slices.Sort(got); !slices.Equal(got, []string{"committed", "open, then committed"}) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestKilledAfterAutoCreation: a topic that Metadata made is there with its id, partitions and records.
func TestKilledAfterAutoCreation(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	b := startIn(t, dir)
	metadata := func(p *producer, name string) kmsg.MetadataResponseTopic {
		req := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = &name
		req.Topics, req.AllowAutoTopicCreation = append(req.Topics, rt), true
		return p.request(req).(*kmsg.MetadataResponse).Topics[0]
	}
	p := &producer{t: t, cl: b.open(t)}
	was := metadata(p, "t")
	if was.ErrorCode != 0 || len(was.Partitions) != 2 {
		t.Fatalf("made: %+v", was)
	}
	record := &kgo.Record{Topic: "t", Partition: 1, Value: []byte("kept")}
	if err := b.open(t, kgo.RecordPartitioner(kgo.ManualPartitioner())).ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	p.cl = startIn(t, killed).open(t)
	if is := metadata(p, "t"); is.TopicID != was.TopicID || len(is.Partitions) != 2 || p.stable(1) != 1 {
		t.Errorf("it was %+v and is %+v, with %d records", was, is, p.stable(1))
	}
}

// cut adds the start of a batch to a segment, as a kill in the middle of a write leaves it.
func cut(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(b, b[:len(b)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
}
