package clienttest

import (
	"testing"

	"github.com/IBM/sarama"
)

// TestSarama0_10_2 plays the requests of a group as sarama sends them to a Kafka of
// 0.10.2 (JoinGroup v1, SyncGroup v0, OffsetCommit v2, OffsetFetch v2). Its consumer
// cannot be used whole, since its Fetch v3 is older than what brokers of today serve.
func TestSarama0_10_2(t *testing.T) {
	t.Parallel()
	v := sarama.V0_10_2_0
	k := start(t)
	k.topic(topic, partitions, 1)
	a := newSaramaAdmin(t, k, v)
	b := coordinatorOf(t, a, "g")

	join := sarama.NewJoinGroupRequest(v)
	join.GroupId, join.ProtocolType = "g", "consumer"
	join.SessionTimeout, join.RebalanceTimeout = int32(session.Milliseconds()), int32(rebalance.Milliseconds())
	must(t, join.AddGroupProtocolMetadata("range", &sarama.ConsumerGroupMemberMetadata{Topics: []string{topic}, UserData: []byte("note")}))
	joined, err := b.JoinGroup(join)
	if err != nil || joined.Err != sarama.ErrNoError || joined.LeaderId != joined.MemberId || len(joined.Members) != 1 {
		t.Fatalf("joined: %+v, %v", joined, err)
	}
	sync := &sarama.SyncGroupRequest{GroupId: "g", GenerationId: joined.GenerationId, MemberId: joined.MemberId}
	must(t, sync.AddGroupAssignmentMember(joined.MemberId, &sarama.ConsumerGroupMemberAssignment{Topics: map[string][]int32{topic: {0, 1}}}))
	synced, err := b.SyncGroup(sync)
	if err != nil || synced.Err != sarama.ErrNoError {
		t.Fatalf("synced: %+v, %v", synced, err)
	}
	if got, err := synced.GetMemberAssignment(); err != nil || len(got.Topics[topic]) != 2 {
		t.Fatalf("assigned: %+v, %v", got, err)
	}
	commit(t, b, joined, 41, sarama.ErrNoError)

	k.kill()
	k.restart()
	b = coordinatorOf(t, a, "g")
	beat, err := b.Heartbeat(&sarama.HeartbeatRequest{GroupId: "g", GenerationId: joined.GenerationId, MemberId: joined.MemberId})
	if err != nil || beat.Err != sarama.ErrNoError {
		t.Fatalf("heartbeat: %+v, %v", beat, err)
	}
	commit(t, b, joined, 42, sarama.ErrNoError)
	old := *joined
	old.GenerationId--
	commit(t, b, &old, 43, sarama.ErrIllegalGeneration)
	if got, err := a.committed("g", topic, partitions); err != nil || len(got) != 1 || got[1] != 42 {
		t.Errorf("committed: %v, %v", got, err)
	}
	if d, err := a.describe("g"); err != nil || d.state != "Stable" || string(d.members[0].userData) != "note" {
		t.Errorf("described: %+v, %v", d, err)
	}
	left, err := b.LeaveGroup(&sarama.LeaveGroupRequest{GroupId: "g", MemberId: joined.MemberId})
	if err != nil || left.Err != sarama.ErrNoError {
		t.Errorf("left: %+v, %v", left, err)
	}
	if d, err := a.describe("g"); err != nil || d.state != "Empty" {
		t.Errorf("described: %+v, %v", d, err)
	}
}

// coordinatorOf asks until it is told: kcoord may just have started.
func coordinatorOf(t *testing.T, a *saramaAdmin, group string) (b *sarama.Broker) {
	t.Helper()
	until(t, "the coordinator is found", func() (err error) {
		if b != nil {
			_ = b.Close()
		}
		if err := a.client.RefreshCoordinator(group); err != nil {
			return err
		}
		if b, err = a.client.Coordinator(group); err != nil {
			return err
		}
		_, err = b.Heartbeat(&sarama.HeartbeatRequest{GroupId: "nobody", MemberId: "nobody"})
		return err
	})
	return b
}

func commit(t *testing.T, b *sarama.Broker, member *sarama.JoinGroupResponse, offset int64, want sarama.KError) {
	t.Helper()
	r := &sarama.OffsetCommitRequest{
		Version: 2, ConsumerGroup: "g", ConsumerGroupGeneration: member.GenerationId, ConsumerID: member.MemberId, RetentionTime: -1,
	}
	r.AddBlock(topic, 1, offset, 0, "")
	got, err := b.CommitOffset(r)
	if err != nil || got.Errors[topic][1] != want {
		t.Fatalf("commit of %d: %+v, %v; want %v", offset, got, err, want)
	}
}
