package group

import "encoding/binary"

// learnTopics finds out which topics the members of a consumer group subscribe
// to. One subscription that does not parse leaves them unknown: then the group
// counts as subscribed to every topic.
func (g *liveGroup) learnTopics() {
	g.topics, g.topicsKnown = nil, false
	if g.protocolType != consumerProtocol {
		return
	}
	topics := map[string]struct{}{}
	for _, m := range g.order {
		if !subscription(m.metadata(g.protocol), topics) {
			return
		}
	}
	g.topics, g.topicsKnown = topics, true
}

// subscribed says whether offsets of a topic must be kept for the members.
func (g *liveGroup) subscribed(topic string) bool {
	if !g.topicsKnown {
		return g.protocolType == consumerProtocol
	}
	_, is := g.topics[topic]
	return is
}

// subscription adds the topics of a consumer's subscription. Whatever its
// version, it begins as version 0 does: version, topics, user data.
func subscription(b []byte, topics map[string]struct{}) bool {
	r := prefix{b: b}
	if r.int16() < 0 {
		return false
	}
	n := r.int32()
	if n < 0 {
		return false
	}
	for ; n > 0 && !r.short; n-- {
		if name := r.bytes(int(r.int16())); !r.short {
			topics[string(name)] = struct{}{}
		}
	}
	if n := r.int32(); n > 0 {
		r.bytes(int(n))
	}
	return !r.short
}

// prefix reads the front of bytes; short says that they were too few.
type prefix struct {
	b     []byte
	short bool
}

func (p *prefix) bytes(n int) []byte {
	if n < 0 || n > len(p.b) {
		p.short, p.b = true, nil
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *prefix) int16() int16 {
	if b := p.bytes(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (p *prefix) int32() int32 {
	if b := p.bytes(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}
