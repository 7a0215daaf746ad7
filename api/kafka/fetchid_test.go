package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// Who asks for a topic by name is given no offset of an earlier topic of that name: the group is told which one it is
// (coordinator/group/testdata/topic_ids.txt shows what it makes of that). What the view does not know, it is
// not told.
func TestFetchByNameIsOfTheTopicOfToday(t *testing.T) {
	s := newStage(t, yes)
	id := s.topic("t")
	c := s.client()
	do[*kmsg.OffsetCommitResponse](c, 9, commitOf(topicOf("t", [16]byte{}, 0))) // and the view knows it
	for v := int16(1); v < 10; v++ {
		req := fetchOf(v, [16]byte{}, "g")
		unknown := "unknown"
		req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: unknown, Partitions: []int32{0}})
		req.Groups[0].Topics = append(req.Groups[0].Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: unknown, Partitions: []int32{0}})
		do[*kmsg.OffsetFetchResponse](c, v, req)
		asked := s.coord.last().(group.Fetch)
		if asked.Topics[0].TopicID != id || asked.Topics[1].TopicID != ([16]byte{}) {
			t.Errorf("v%d: the group was asked for %+v", v, asked.Topics)
		}
	}
}
