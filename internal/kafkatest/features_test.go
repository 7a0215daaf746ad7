//go:build kafka

package kafkatest

import (
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestKafkaFeatures runs Kafka's own kafka-features against kcoord, with its data plane in
// process and in front of a real broker.
func TestKafkaFeatures(t *testing.T) {
	b := newBroker(t)
	o := &operator{t: t, dir: t.TempDir(), env: os.Environ()}
	o.build()
	t.Run("dev", func(t *testing.T) {
		front := freePort(t)
		kcoord := o.start("dev", "--listen", front, "--data", o.dir+"/dev")
		features(t, o, b, front)
		// All features at once go to those of a release, and back.
		o.says(b.features(front, 0, "upgrade", "--release-version", "4.4-IV2"), `eligible.leader.replicas.version was upgraded to 1`)
		o.says(b.features(front, 0, "downgrade", "--release-version", "4.3-IV0"), `metadata.version was downgraded to 30`)
		o.says(b.features(front, 0, "upgrade", "--release-version", "4.4-IV2"), `metadata.version was upgraded to 33`)
		kcoord.stop()
	})
	t.Run("serve", func(t *testing.T) {
		front := freePort(t)
		b.start(front, "transaction.partition.verification.enable=false")
		kcoord := o.start("serve", "--listen", front, "--upstream", b.at, "--data", o.dir+"/serve")
		features(t, o, b, front)
		// What is KRaft's is shown as the broker has it, and not changed here. The broker's own
		// metadata.version is another one.
		o.says(b.features(front, 0, "describe"), `kraft.version .*FinalizedVersionLevel: 1 `)
		o.says(b.features(front, 1, "downgrade", "--feature", "eligible.leader.replicas.version=0"), `It is KRaft's, not kcoord's`)
		o.says(b.features(front, 0, "downgrade", "--unsafe", "--feature", "metadata.version=25"), `metadata.version was downgraded to 25`)
		out, err := b.sh("run", "org.apache.kafka.tools.FeatureCommand", "--bootstrap-controller", b.controller, "describe")
		if err != nil {
			t.Fatal(err)
		}
		o.says(out, `metadata.version .*FinalizedVersionLevel: 4.4-IV2`)
		kcoord.stop()
	})
}

func features(t *testing.T, o *operator, b *broker, at string) {
	t.Helper()
	r := &reader{t: t, at: at}
	r.createTopic()
	c := r.client()
	defer c.Close()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "records", Partition: 1, At: 5, LeaderEpoch: -1})
	if err := kadm.NewClient(c).CommitAllOffsets(t.Context(), "keeps-a-topic-id", offsets); err != nil {
		t.Fatal(err)
	}
	finalized := func(level string) {
		t.Helper()
		o.says(b.features(at, 0, "describe"), `metadata.version .*SupportedMinVersion: 3.3-IV3 .*SupportedMaxVersion: 4.4-IV2 .*FinalizedVersionLevel: `+level+` .*Epoch: \d`)
	}
	finalized("4.4-IV2")
	o.says(b.features(at, 0, "describe"), `transaction.version .*FinalizedVersionLevel: [12]`)
	o.says(b.features(at, 1, "upgrade", "--metadata", "3.4"), `Can't downgrade the version of this feature without setting the upgrade type`)
	o.says(b.features(at, 1, "downgrade", "--metadata", "3.4"), `would lose what is stored: OffsetCommitValue: 1 record of 1 group would lose topicId`)
	o.says(b.features(at, 1, "downgrade", "--metadata", "3.4", "--dry-run"), `Can not downgrade metadata.version to 8.*would lose topicId`)
	o.says(b.features(at, 0, "downgrade", "--metadata", "3.4", "--unsafe", "--dry-run"), `metadata.version can be downgraded to 8`)
	finalized("4.4-IV2")
	o.says(b.features(at, 0, "downgrade", "--metadata", "3.4", "--unsafe"), `metadata.version was downgraded to 8`)
	finalized("3.4-IV0")
	o.says(b.features(at, 0, "upgrade", "--metadata", "4.4"), `metadata.version was upgraded to 33`)
	finalized("4.4-IV2")
	o.says(b.features(at, 0, "downgrade", "--metadata", "4.3"), `metadata.version was downgraded to 30`) // nothing is lost
	o.says(b.features(at, 0, "upgrade", "--feature", "metadata.version=33", "--feature", "group.version=1"), `group.version was upgraded to 1`)
	o.says(b.features(at, 0, "disable", "--feature", "streams.version"), `streams.version was disabled`)
	o.says(b.features(at, 0, "upgrade", "--feature", "streams.version=1", "--feature", "share.version=2"), `streams.version was upgraded to 1`)
}

// features runs Kafka's kafka-features, which has to fail or not.
func (b *broker) features(at string, code int, args ...string) string {
	b.t.Helper()
	out, err := b.sh(append([]string{"run", "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", at}, args...)...)
	if (err != nil) != (code != 0) {
		b.t.Errorf("kafka-features %v: %s, %v", args, out, err)
	}
	if err != nil {
		return err.Error()
	}
	return out
}
