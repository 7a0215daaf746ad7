package embedded

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// keepMade has topics that Metadata makes written to disk before they are told of. kfake itself writes them
// when it ends in order: killed, it had made them anew, with another id and without their records, and what was
// committed for them was another topic's.
func (b *Broker) keepMade() {
	b.cluster.ControlKey(3, func(req kmsg.Request) (kmsg.Response, error, bool) {
		m := req.(*kmsg.MetadataRequest)
		for _, t := range m.Topics {
			if m.AllowAutoTopicCreation && t.Topic != nil && t.TopicID == ([16]byte{}) && b.cluster.TopicInfo(*t.Topic) == nil {
				_ = b.cluster.CreateTopic(*t.Topic, -1, nil) // a name that cannot be is kfake's to answer
			}
		}
		return nil, nil, false // which it goes on with
	})
}
