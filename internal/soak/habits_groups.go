package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// brief is the shortest session that Kafka's defaults allow.
const brief = 6 * time.Second

// badGroups is how many groups a habit has. Names come again, so that what kcoord rightly keeps
// for each does not grow.
const badGroups = 20

func (b *bad) once(ctx context.Context, req kmsg.Request) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = do(w, req, req.ResponseKind())
	return err
}

// joined joins with an id of kcoord's choice. instance may be empty.
func (b *bad) joined(w *wire, group, instance string) (*kmsg.JoinGroupResponse, error) {
	req := joinRequest(group, "", brief)
	if instance != "" {
		req.InstanceID = &instance
	}
	resp, err := do(w, req, kmsg.NewPtrJoinGroupResponse())
	if err != nil || instance != "" {
		return resp, err
	}
	return do(w, joinRequest(group, resp.MemberID, brief), resp)
}

func joinNoSync(ctx context.Context, b *bad, client int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	if _, err = b.joined(w, fmt.Sprintf("unsynced-%d", client/2), ""); err != nil {
		w.Close()
		return err
	}
	wait(ctx, w)
	return nil
}

func joinAndVanish(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	group := fmt.Sprintf("vanished-%d", time.Now().UnixMilli()/50%badGroups)
	resp, err := do(w, joinRequest(group, "", brief), kmsg.NewPtrJoinGroupResponse())
	if err != nil {
		return err
	}
	return w.send(joinRequest(group, resp.MemberID, brief)) // and is gone before the answer
}

func askForID(ctx context.Context, b *bad, _ int) error {
	return b.once(ctx, joinRequest("undecided", "", brief))
}

// sameInstance is several processes that were given the same group.instance.id.
func sameInstance(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	resp, err := b.joined(w, "twins", "one")
	if err != nil {
		return err
	}
	var members []kmsg.JoinGroupResponseMember
	if resp.LeaderID == resp.MemberID {
		members = resp.Members
	}
	req := syncRequest("twins", resp.MemberID, resp.Generation, members)
	req.InstanceID = kmsg.StringPtr("one")
	_, err = do(w, req, kmsg.NewPtrSyncGroupResponse())
	return err
}

func leaveUnknown(ctx context.Context, b *bad, _ int) error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 4, "good-0"
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = "nobody"
	req.Members = append(req.Members, m)
	return b.once(ctx, req)
}

func beatUnknown(ctx context.Context, b *bad, _ int) error {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = beatVersion, "good-0", "nobody", 1
	return b.once(ctx, req)
}

func syncUnknown(ctx context.Context, b *bad, _ int) error {
	return b.once(ctx, syncRequest("good-0", "nobody", 1, nil))
}

func commitStale(ctx context.Context, b *bad, _ int) error {
	return b.often(ctx, 200, 10*time.Millisecond, func(w *wire, i int) error {
		_, err := do(w, commitRequest(fmt.Sprintf("good-%d", i%b.Groups), "nobody", 1, topicName, 0, 10, 1, nil), kmsg.NewPtrOffsetCommitResponse())
		return err
	})
}

// commitIntoGood tries what a consumer without a group does in a group that has members.
func commitIntoGood(ctx context.Context, b *bad, _ int) error {
	return b.often(ctx, 200, 10*time.Millisecond, func(w *wire, i int) error {
		resp, err := do(w, commitRequest(fmt.Sprintf("good-%d", i%b.Groups), "", -1, topicName, 0, 1, 0, nil), kmsg.NewPtrOffsetCommitResponse())
		if err == nil && resp.Topics[0].Partitions[0].ErrorCode == 0 {
			err = errUnexpected
		}
		return err
	})
}

func hugeMetadata(ctx context.Context, b *bad, client int) error {
	long := strings.Repeat("m", 32_000)
	return b.often(ctx, 50, 100*time.Millisecond, func(w *wire, _ int) error {
		_, err := do(w, commitRequest(fmt.Sprintf("talkative-%d", client), "", -1, topicName, 0, 10, 1, &long), kmsg.NewPtrOffsetCommitResponse())
		return err
	})
}

func commitUnknownTopics(ctx context.Context, b *bad, _ int) error {
	return b.often(ctx, 50, 100*time.Millisecond, func(w *wire, _ int) error {
		topic := fmt.Sprintf("not-there-%x", random(8))
		_, err := do(w, commitRequest("lost", "", -1, topic, 0, 1, 1, nil), kmsg.NewPtrOffsetCommitResponse())
		return err
	})
}

// commitMany names partitions, most of which are not there.
func commitMany(ctx context.Context, b *bad, _ int) error {
	return b.once(ctx, commitRequest("greedy", "", -1, topicName, 0, 10_000, 1, nil))
}

// comeAndGo commits and deletes the group, as cleaning jobs do.
func comeAndGo(ctx context.Context, b *bad, client int) error {
	return b.often(ctx, 100, 20*time.Millisecond, func(w *wire, i int) error {
		group := fmt.Sprintf("passing-%d-%d", client, i%badGroups)
		if _, err := do(w, commitRequest(group, "", -1, topicName, 0, 10, 1, nil), kmsg.NewPtrOffsetCommitResponse()); err != nil {
			return err
		}
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Version, req.Groups = 2, []string{group}
		_, err := do(w, req, kmsg.NewPtrDeleteGroupsResponse())
		return err
	})
}

func askUnknownGroups(ctx context.Context, b *bad, _ int) error {
	return b.often(ctx, 200, 10*time.Millisecond, func(w *wire, i int) error {
		group := fmt.Sprintf("never-%d", i) // kcoord remembers some time that there is none
		if i%2 == 0 {
			_, err := do(w, fetchRequest(group, topicName, 0, 10), kmsg.NewPtrOffsetFetchResponse())
			return err
		}
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Version, req.Groups = 5, []string{group}
		_, err := do(w, req, kmsg.NewPtrDescribeGroupsResponse())
		return err
	})
}

// txnNeverEnds begins a transaction and goes away. Its ids come again.
func txnNeverEnds(ctx context.Context, b *bad, client int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	id := fmt.Sprintf("endless-%d-%d", client, time.Now().Unix()%5)
	p, err := do(w, initRequest(id, brief), kmsg.NewPtrInitProducerIDResponse())
	if err != nil || p.ErrorCode != 0 {
		return err
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.Version, add.TransactionalID, add.ProducerID, add.ProducerEpoch = 3, id, p.ProducerID, p.ProducerEpoch
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = topicName, []int32{0, 1, 2}
	add.Topics = append(add.Topics, t)
	_, err = do(w, add, kmsg.NewPtrAddPartitionsToTxnResponse())
	return err
}

func initRequest(id string, timeout time.Duration) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &id, int32(timeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = -1, -1
	return req
}

// fenceItself is a producer in a crash loop.
func fenceItself(ctx context.Context, b *bad, client int) error {
	return b.once(ctx, initRequest(fmt.Sprintf("restless-%d", client/2), brief))
}

func endUnknown(ctx context.Context, b *bad, _ int) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = 3, "nobody", 1, 1, true
	return b.once(ctx, req)
}
