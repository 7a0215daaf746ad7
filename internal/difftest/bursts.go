//go:build kafka

package difftest

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bursts are several requests that go out over one connection with one write. Kafka takes one after the other: each is
// answered before the next is looked at, and one that is parked holds back what is behind it.

var allBursts = flag.Bool("bursts", false, "each sequence sends several requests with one write, not only a third of them")

// bursting says whether a sequence sends several requests at once.
func bursting(seed uint64) bool {
	return restart == "" && (*allBursts || rand.New(rand.NewPCG(seed, 13)).IntN(3) == 0)
}

// brokersKinds are there, too, in bursts: requests of the broker's, and those that end a connection.
var brokersKinds = []opKind{
	{"metadata", 8, 4, 13}, {"versions", 8, 0, 6}, {"plainProduce", 6, 3, 11}, {"silentProduce", 5, 3, 11}, {"plainFetch", 5, 4, 12},
	{"plainOffsets", 4, 1, 10}, {"burst", 50, 2, 8}, {"heartbeat", 20, 0, 4}, {"commit", 20, 2, 10}, {"fetch", 20, 1, 10}, {"junk", 2, 0, 0}, {"half", 2, 2, 10}, {"brokersJunk", 2, 9, 12}, {"silentFailure", 2, 3, 11},
}

// aloneKinds are in no burst but as its last: what comes after depends on when a marker is written, or is of other things.
var aloneKinds = []string{"init", "endTxn", "markers", "half", "silentFailure"}

// burst is how many of the next ops go out together: no more than an op before them says.
func burst(before *op, ops []op) int {
	if before == nil || before.kind != "burst" {
		return 1
	}
	for n, o := range ops[:min(int(before.version), len(ops))] {
		switch {
		case o.silent() || o.kind == "wait" || o.kind == "hangup":
			return max(n, 1)
		case slices.Contains(aloneKinds, o.kind):
			return n + 1
		}
	}
	return min(int(before.version), len(ops))
}

// outgoing is one request of a burst.
type outgoing struct {
	op            int
	req, answered kmsg.Request // which is another one where req has no answer
	frame         []byte
	half          bool // and nothing comes after it
}

// sendAll sends requests with one write, and has their answers delivered as they come. It returns when they are on their way, unless
// nobody takes them.
func (t *target) sendAll(all []outgoing, to chan<- answer) error {
	c, err := t.conn()
	if err != nil {
		return err
	}
	var b []byte
	half := false
	for _, s := range all {
		b, half = append(b, s.frame...), s.half
	}
	written := make(chan struct{})
	go func() {
		_, err := c.nc.Write(b)
		close(written)
		if half && err == nil {
			_ = c.nc.(*net.TCPConn).CloseWrite() // fails where the other side has closed already; its answers are there all the same
		}
		if err != nil {
			err = errClosed
		}
		for i, s := range all {
			a := answer{op: s.op, req: s.req, c: c, more: i < len(all)-1}
			if err == nil {
				a.resp, err = receive(c.nc, s.answered, int32(s.op))
			}
			a.err = err
			to <- a
		}
	}()
	select {
	case <-written:
	case <-time.After(missing):
	}
	return nil
}

func (d *draw) metadata() kmsg.Request {
	r := kmsg.NewPtrMetadataRequest()
	for range 1 + d.IntN(2) {
		name := pick(d, "dt-a", "dt-b", d.s.prefix+"nothing")
		r.Topics = append(r.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	r.AllowAutoTopicCreation = false
	return r
}

// versions asks as clients begin; of a version that nobody knows, too.
func (d *draw) versions() kmsg.Request {
	r := kmsg.NewPtrApiVersionsRequest()
	r.ClientSoftwareName, r.ClientSoftwareVersion = "difftest", "1"
	if d.odd(10) {
		r.ClientSoftwareName = "not allowed here"
	}
	return r
}

func (d *draw) plainProduce() kmsg.Request {
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis = pick[int16](d, 1, -1), 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = pick(d, "dt-a", "dt-b")
	p := kmsg.NewProduceRequestTopicPartition()
	// Of a producer without an id; of now, else it is old enough to be deleted.
	p.Records = batch{producer: producer{-1, -1}, first: -1, at: time.Now(), values: []string{"v"}}.encode()
	if d.odd(6) {
		p.Partition = 77
	}
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// silentProduce is one that has no answer.
func (d *draw) silentProduce() kmsg.Request {
	r := d.plainProduce().(*kmsg.ProduceRequest)
	r.Acks, r.Topics[0].Partitions[0].Partition = 0, 0
	return r
}

// silentFailure is one that fails, which ends the connection. kcoord, which the broker does not tell, may have gone on
// to the next requests by then.
func (d *draw) silentFailure() kmsg.Request {
	r := d.silentProduce().(*kmsg.ProduceRequest)
	r.Topics[0].Partitions[0].Partition = 77
	return r
}

func (d *draw) plainFetch() kmsg.Request {
	r := kmsg.NewPtrFetchRequest()
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes = pick[int32](d, 0, 10, 30), 1, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic = pick(d, "dt-a", "dt-b")
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = pick[int64](d, 0, 1<<40), 1<<10
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

func (d *draw) plainOffsets() kmsg.Request {
	r := kmsg.NewPtrListOffsetsRequest()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = "dt-a"
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.Partition = -2, int32(d.IntN(5))
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// brokersRequests make what brokersKinds send, as requests does.
func brokersRequests() map[string]func(*draw) kmsg.Request {
	return map[string]func(*draw) kmsg.Request{
		"metadata": (*draw).metadata, "versions": (*draw).versions, "plainProduce": (*draw).plainProduce, "silentProduce": (*draw).silentProduce,
		"plainFetch": (*draw).plainFetch, "plainOffsets": (*draw).plainOffsets, "junk": (*draw).versions, "half": (*draw).commit,
		"silentFailure": (*draw).silentFailure, "brokersJunk": (*draw).metadata,
	}
}

// shared says whether all sequences write to a topic.
func shared(topic string) bool { return topic == "dt-a" || topic == "dt-b" }

// compared is an answer without what kcoord does not serve, and without offsets and records of logs that all
// sequences write to.
func compared(resp kmsg.Response) kmsg.Response {
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		return &kmsg.ApiVersionsResponse{ErrorCode: r.ErrorCode}
	case *kmsg.ProduceResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				if shared(r.Topics[i].Topic) {
					r.Topics[i].Partitions[j].BaseOffset = 0
				}
			}
		}
	case *kmsg.FetchResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				if p := &r.Topics[i].Partitions[j]; shared(r.Topics[i].Topic) {
					p.HighWatermark, p.LastStableOffset, p.RecordBatches = 0, 0, nil
				}
			}
		}
	}
	return resp
}

// sent makes an op's request ready to be sent.
func (s *sequence) sent(i int, o op, t *target) outgoing {
	req, client := s.request(o, t)
	out := outgoing{op: i, req: req, answered: req, frame: encode(req, int32(i), client), half: o.kind == "half"}
	if silent(req) {
		out.answered = behind()
		out.frame = append(out.frame, encode(out.answered, int32(i), client)...)
	}
	switch o.kind {
	case "junk": // of an API that there is not
		out.frame = []byte{0, 0, 0, 12, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	case "brokersJunk": // which only the broker reads
		out.frame = append(out.frame[:len(out.frame)-8:len(out.frame)-8], bytes.Repeat([]byte{0xff}, 8)...)
	case "half":
		out.frame = out.frame[:1+int(o.seed%uint64(len(out.frame)-1))]
	}
	return out
}
