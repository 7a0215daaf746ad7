package kafka

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/internal/recordbin"

	"github.com/kcoord/kcoord/coordinator/group"
)

// willing replies to everything at once.
func willing(req group.Request) (group.Response, error, bool) {
	if _, join := req.(group.Join); join {
		return kmsg.NewPtrJoinGroupResponse(), nil, true
	}
	return yes(req)
}

// FuzzRequests: whatever a client sends, nothing panics, all that comes back is
// frames, and another connection goes on.
func FuzzRequests(f *testing.F) {
	for _, b := range corpus(f) {
		f.Add(b)
	}
	for _, req := range []kmsg.Request{beat("g"), joinOf("g"), commitOf(topicOf("t", [16]byte{}, 0, 1)), fetchOf(7, [16]byte{}, "g"), asker(), kmsg.NewPtrMetadataRequest()} {
		for _, v := range []int16{req.MaxVersion(), req.MaxVersion() / 2} {
			req.SetVersion(v)
			f.Add(append(frame(1, req), frame(2, req)...))
		}
	}
	s := newStage(f, willing)
	s.topic("t")
	refused := func() (net.Conn, error) { return nil, errors.New("refused") }
	s.passTo.Store(&refused)
	var once sync.Mutex
	other := s.client()
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		s.srv.accept(theirs, &port{node: -1})
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				var head [4]byte
				if _, err := io.ReadFull(ours, head[:]); err != nil {
					return
				}
				n := int64(binary.BigEndian.Uint32(head[:]))
				if got, err := io.Copy(io.Discard, io.LimitReader(ours, n)); err != nil || got != n && got > 0 {
					return
				}
			}
		}()
		ours.Write(sent)
		ours.Close()
		<-read
		once.Lock()
		defer once.Unlock()
		other.t = t
		do[*kmsg.HeartbeatResponse](other, 4, beat("g"))
	})
}

// FuzzDecodeCommit: what decodes here decodes in kmsg, and to the same.
func FuzzDecodeCommit(f *testing.F) {
	for v := int16(2); v <= 10; v++ {
		req := commitOf(topicOf("t", [16]byte{7}, 0, 1), topicOf("u", [16]byte{8}))
		req.Version, req.InstanceID = v, ptr("i")
		f.Add(v, req.AppendTo(nil))
		req.InstanceID, req.Topics[0].Partitions[0].Metadata = nil, nil
		f.Add(v, req.AppendTo(nil))
	}
	s := newStage(f, yes)
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		if v < 2 || v > 10 {
			return
		}
		k := &call{c: &conn{srv: s.srv}, api: s.srv.table[8], version: v}
		if k.decodeCommit(body) != nil {
			return
		}
		want := kmsg.NewPtrOffsetCommitRequest()
		want.Version = v
		if err := want.ReadFrom(body); err != nil {
			t.Fatalf("kmsg does not read it: %v", err)
		}
		want.Group, want.MemberID, want.InstanceID = java(want.Group), java(want.MemberID), javaPtr(want.InstanceID)
		got := k.commit.req
		if len(got.Topics) == 0 {
			got.Topics = nil
		}
		for i := range want.Topics { // tags are nobody's here
			w, g := &want.Topics[i], &got.Topics[i]
			w.UnknownTags = kmsg.Tags{}
			w.Topic = java(w.Topic)
			if len(g.Partitions) == 0 {
				g.Partitions = nil
			}
			if len(w.Partitions) == 0 {
				w.Partitions = nil
			}
			for j := range w.Partitions {
				w.Partitions[j].UnknownTags = kmsg.Tags{}
				w.Partitions[j].Metadata = javaPtr(w.Partitions[j].Metadata)
			}
		}
		if len(want.Topics) == 0 {
			want.Topics = nil
		}
		want.UnknownTags = kmsg.Tags{}
		if !reflect.DeepEqual(&got, want) {
			t.Fatalf("got  %+v\nwant %+v", &got, want)
		}
	})
}

// FuzzDecodeFetch: what decodes here decodes in kmsg, and to the same, in memory that was
// used before.
func FuzzDecodeFetch(f *testing.F) {
	for v := int16(1); v <= 10; v++ {
		req := fetchOf(v, [16]byte{7}, "g", "h")
		req.Version = v
		f.Add(v, req.AppendTo(nil))
		if v >= 8 {
			req.Groups[0].Topics, req.Groups[1].MemberID = nil, ptr("m")
		} else {
			req.Topics = nil
		}
		f.Add(v, req.AppendTo(nil))
	}
	s := newStage(f, yes)
	f.Fuzz(func(t *testing.T, v int16, body []byte) {
		if v < 1 || v > 10 {
			return
		}
		k := &call{c: &conn{srv: s.srv}, api: s.srv.table[9], version: v}
		for range 2 {
			k.reset()
			k.c, k.version = &conn{srv: s.srv}, v
			if k.decodeFetch(body) != nil {
				return
			}
		}
		want := kmsg.NewPtrOffsetFetchRequest()
		want.Version = v
		if err := want.ReadFrom(body); err != nil {
			t.Fatalf("kmsg does not read it: %v", err)
		}
		if v < 8 {
			want.Groups = []kmsg.OffsetFetchRequestGroup{wantSole(want)}
		}
		if len(k.fetch.groups) != len(want.Groups) || k.fetch.stable != want.RequireStable {
			t.Fatalf("got  %+v %v\nwant %+v", k.fetch.groups, k.fetch.stable, want)
		}
		for i := range want.Groups { // tags are nobody's here
			w, g := &want.Groups[i], &k.fetch.groups[i]
			w.UnknownTags, w.Group, w.MemberID = kmsg.Tags{}, java(w.Group), javaPtr(w.MemberID)
			for j := range w.Topics {
				w.Topics[j].UnknownTags, w.Topics[j].Topic = kmsg.Tags{}, java(w.Topics[j].Topic)
				if len(w.Topics[j].Partitions) == 0 && len(g.Topics) == len(w.Topics) && len(g.Topics[j].Partitions) == 0 {
					w.Topics[j].Partitions, g.Topics[j].Partitions = nil, nil
				}
			}
			if !reflect.DeepEqual(g, w) {
				t.Fatalf("got  %+v\nwant %+v", g, w)
			}
		}
	})
}

// wantSole is the group of a version that has one.
func wantSole(req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	if req.Topics != nil {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range req.Topics {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	return g
}

// java is a string as Kafka reads it: what is no UTF-8 is replaced.
func java(s string) string { return recordbin.JavaString([]byte(s)) }

func javaPtr(s *string) *string {
	if s == nil {
		return nil
	}
	j := java(*s)
	return &j
}

// Memory that was used for one commit does not show in the next.
func TestCommitMemoryIsClean(t *testing.T) {
	s := newStage(t, yes)
	s.topic("t")
	k := &call{c: &conn{srv: s.srv}, api: s.srv.table[8], version: 9}
	for _, parts := range [][]int32{{0, 1, 0, 1, 1}, {1}, {0, 0, 0}, {}} {
		req := commitOf(topicOf("t", [16]byte{}, parts...), topicOf("none", [16]byte{}, parts...))
		req.Version = 9
		for i := range req.Topics[0].Partitions {
			req.Topics[0].Partitions[i].Metadata = nil
		}
		if err := k.decodeCommit(req.AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		got := k.commit.req.Topics
		if len(got) != 2 || len(got[0].Partitions) != len(parts) || len(got[1].Partitions) != len(parts) {
			t.Fatalf("%+v", got)
		}
		for i, p := range parts {
			if got[0].Partitions[i].Metadata != nil || *got[1].Partitions[i].Metadata != *req.Topics[1].Partitions[i].Metadata || got[1].Partitions[i].Partition != p {
				t.Fatalf("%+v", got[1].Partitions[i])
			}
		}
		k.reset()
		k.c = &conn{srv: s.srv}
	}
}
