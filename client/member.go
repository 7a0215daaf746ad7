package client

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ConsumerGroupMetadata is a member of a group in one of its generations. It is made by
// MetadataOf alone, so that what has one was a member.
type ConsumerGroupMetadata interface {
	Group() string
	Generation() int32
	MemberID() string
	// InstanceID is that of a static member.
	InstanceID() (id string, static bool)

	ofLiveMember()
}

// ErrNoMember says that a client is in no group, or has not joined it yet.
var ErrNoMember = errors.New("client: it is no member of a group")

// MetadataOf is who a client is in its group now. It does not change with the client:
// taken when records are polled, and before a rebalance is allowed, it is of the generation
// that consumed them, and is refused once another one has begun.
func MetadataOf(consumer *kgo.Client) (ConsumerGroupMetadata, error) {
	group, _ := consumer.OptValue(kgo.ConsumerGroup).(string)
	id, generation := consumer.GroupMetadata()
	if group == "" || id == "" || generation <= 0 { // generations begin with 1
		return nil, ErrNoMember
	}
	m := &member{group: group, id: id, generation: generation}
	if is := consumer.OptValues(kgo.InstanceID); len(is) == 2 && is[1] == true {
		m.instance, _ = is[0].(string)
		m.static = true
	}
	return m, nil
}

type member struct {
	group, id, instance string
	static              bool
	generation          int32
}

func (m *member) Group() string              { return m.group }
func (m *member) Generation() int32          { return m.generation }
func (m *member) MemberID() string           { return m.id }
func (m *member) InstanceID() (string, bool) { return m.instance, m.static }
func (m *member) ofLiveMember()              {}
