package kafka

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
)

// call is one request and the place of its answer in the order of answers. It
// is used again when it has been answered, and so is its memory.
type call struct {
	c           *conn
	api         *api
	version     int16
	correlation int32
	began       time.Time

	// Of c.mu.
	ready     bool // can be answered
	abandoned bool // was answered in the coordinator's place: see conn.drain
	passed    bool // the broker answers
	missing   int  // parts of a fan-out that are out
	weight    int  // of conn.held

	size   int32 // of the broker's answer, without its length
	resp   group.Response
	err    error
	parts  []part
	answer func(*call, group.Response, error) kmsg.Response // nil: resp is the answer
	reply  func(group.Response, error)                      // complete, bound once

	produced *produced // a transactional Produce that the broker got in another shape
	arrived  func()    // of c.mu: tells that the broker has written a transactional Produce; nil: nobody minds

	beat   kmsg.HeartbeatRequest
	commit commit
	fetch  fetch
}

// calls are those that nobody uses.
var calls sync.Pool

// newCall returns a call for another request.
func newCall() *call {
	if k, used := calls.Get().(*call); used {
		return k
	}
	k := &call{}
	k.reply = k.complete
	return k
}

// part is one answer of a fan-out.
type part struct {
	resp group.Response
	err  error
}

// ask hands a request to the coordinator. shape makes the answer of what it
// replies, on the connection's writer.
func (k *call) ask(req group.Request, shape func(*call, group.Response, error) kmsg.Response) {
	k.answer = shape
	k.c.srv.o.Coordinator.Group(req, k.reply)
}

// askAll hands over one request a part. shape finds the replies, in the order of
// the requests, in parts.
func (k *call) askAll(reqs []group.Request, shape func(*call, group.Response, error) kmsg.Response) {
	k.answer = shape
	k.parts, k.missing = make([]part, len(reqs)), len(reqs)
	if len(reqs) == 0 {
		k.complete(nil, nil)
	}
	for i, req := range reqs {
		k.c.srv.o.Coordinator.Group(req, func(resp group.Response, err error) { k.completePart(i, resp, err) })
	}
}

// done answers without asking.
func (k *call) done(resp kmsg.Response) { k.complete(resp, nil) }

// complete takes the coordinator's reply. It must not wait for anybody, since the
// shard's goroutine calls it.
func (k *call) complete(resp group.Response, err error) {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.abandoned {
		return
	}
	if k.ready {
		panic(fmt.Sprintf("kafka: %s of %s was answered twice", apiName(k.api.key), c.remote))
	}
	k.resp, k.err = resp, err
	c.settle(k)
}

func (k *call) completePart(i int, resp group.Response, err error) {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	k.parts[i] = part{resp, err}
	if k.missing--; k.missing == 0 && !k.abandoned {
		c.settle(k)
	}
}

// abandon answers in the coordinator's place. What it replies later is dropped,
// so the call is not used again. REQUIRES c.mu.
func (k *call) abandon() {
	k.abandoned = true
	k.err = coordinator.ErrNotCoordinator
	k.c.settle(k)
}

// large says whether the answer may be of any size.
func (k *call) large() bool { return k.weight >= windowBytes }

// encode appends the answer's frame.
func (k *call) encode(out []byte) []byte {
	var resp kmsg.Response
	if k.answer != nil {
		resp = k.answer(k, k.resp, k.err)
	} else {
		resp = k.resp.(kmsg.Response)
	}
	resp.SetVersion(k.version)
	return k.appendResponse(out, resp)
}

// appendResponse appends an answer's frame.
func (k *call) appendResponse(out []byte, resp kmsg.Response) []byte {
	at := len(out)
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(k.correlation))
	if resp.IsFlexible() && k.api.key != 18 { // KIP-511: whoever asks for versions knows none yet
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out[at:], uint32(len(out)-at-4))
	return out
}

// reset readies a call for another request.
func (k *call) reset() {
	k.c, k.ready, k.passed, k.resp, k.err, k.answer, k.parts = nil, false, false, nil, nil, nil, nil
	k.produced, k.arrived = nil, nil
	k.commit.reset()
	k.fetch.reset()
}

// failed counts an error of an answer.
func (k *call) failed(code int16) {
	if code != 0 {
		k.c.srv.m.failed(k.api.key, code)
	}
}
