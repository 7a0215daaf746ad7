package check

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// freePort is where nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func startBroker(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	b, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "t")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// says looks for a finding of a level with a text.
func says(t *testing.T, all []Finding, level Level, text string) {
	t.Helper()
	for _, f := range all {
		if f.Level == level && strings.Contains(f.Text, text) {
			return
		}
	}
	t.Errorf("no %s with %q in %v", level, text, all)
}

func TestNoBroker(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := All(t.Context(), Options{Upstream: freePort(t), Listen: busy.Addr().String(), Advertise: "0.0.0.0:9092", Data: "/proc/kcoord"})
	says(t, all, Fail, busy.Addr().String()+" cannot be listened on: ")
	says(t, all, Fail, "Clients cannot connect to 0.0.0.0:9092")
	says(t, all, Fail, "/proc cannot be written")
	says(t, all, Fail, "No broker answers on ")
}

func TestBrokerAsItIsAtFirst(t *testing.T) {
	b := startBroker(t, kfake.BrokerConfigs(map[string]string{"transaction.partition.verification.enable": "true"}))
	client, err := kgo.NewClient(kgo.SeedBrokers(b.ListenAddrs()...), kgo.ConsumerGroup("reading"), kgo.ConsumeTopics("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !client.PollFetches(t.Context()).IsClientClosed() && t.Context().Err() == nil {
		}
	}()
	defer func() { client.Close(); <-done }()
	for joined := false; !joined; { // the group is there
		listed, err := kadm.NewClient(client).ListGroups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		joined = listed["reading"].State != "" && listed["reading"].State != "Empty"
	}
	all := All(t.Context(), Options{Upstream: b.ListenAddrs()[0], Listen: freePort(t), Data: filepath.Join(t.TempDir(), "a", "b")})
	says(t, all, OK, "is free to listen on")
	says(t, all, OK, "does not exist yet, and can be made")
	says(t, all, OK, "A sync takes ")
	says(t, all, OK, "answers, of cluster ")
	says(t, all, OK, "versions are new enough")
	says(t, all, Warn, "The broker advertises another address than kcoord's")
	says(t, all, Warn, "these have members (1): reading.")
	says(t, all, OK, "The clock says ")
	for _, f := range all {
		if f.Level == Fail {
			t.Errorf("%s", f.Text)
		}
	}
}

// TestGroupsThatAreNotServed finds groups of KIP-848 and KIP-932, whose clients kcoord would turn away.
func TestGroupsThatAreNotServed(t *testing.T) {
	b := startBroker(t)
	b.ControlKey(16, func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		resp := r.ResponseKind().(*kmsg.ListGroupsResponse)
		for name, of := range map[string]string{"old": "classic", "new": "consumer", "queue": "share", "untold": ""} {
			resp.Groups = append(resp.Groups, kmsg.ListGroupsResponseGroup{Group: name, GroupType: of, GroupState: "Empty"})
		}
		return resp, nil, true
	})
	all := All(t.Context(), Options{Upstream: b.ListenAddrs()[0], Listen: freePort(t)})
	says(t, all, OK, "Nobody is in one of the broker's groups (4)")
	says(t, all, Warn, "(2) use a protocol that kcoord does not serve yet: new (consumer), queue (share). Give their clients group.protocol=classic")
}

func TestBrokerThatSaysLittle(t *testing.T) {
	b := startBroker(t, kfake.NumBrokers(3))
	refuse := func(key int16, answer func(kmsg.Request) kmsg.Response) {
		b.ControlKey(key, func(r kmsg.Request) (kmsg.Response, error, bool) { b.KeepControl(); return answer(r), nil, true })
	}
	refuse(32, func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range r.(*kmsg.DescribeConfigsRequest).Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ErrorCode, one.ResourceType, one.ResourceName = kerr.ClusterAuthorizationFailed.Code, of.ResourceType, of.ResourceName
			resp.Resources = append(resp.Resources, one)
		}
		return resp
	})
	refuse(60, func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.DescribeClusterResponse)
		resp.ClusterAuthorizedOperations = 1 << 8 // Describe
		return resp
	})
	all := All(t.Context(), Options{Upstream: b.ListenAddrs()[0], Listen: freePort(t)})
	says(t, all, Fail, "None of the brokers (")
	says(t, all, Warn, "The broker's settings cannot be read (CLUSTER_AUTHORIZATION_FAILED)")
	says(t, all, Warn, "neither ClusterAction nor Alter")
	says(t, all, Warn, "The data folder was not looked at")
	says(t, all, OK, "no groups whose offsets would have to be copied")
}
