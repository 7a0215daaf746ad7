package kafka

import (
	"regexp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// softwareName is what clients may call themselves (KIP-511).
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// patience is how long a client that asks for versions waits for the broker's
// first answer after a start.
const patience = time.Second

// apiVersions announces what is served: our own APIs, and those of the broker as
// far as both sides go. While the broker has never answered, the table stands in:
// a client that is told of no Metadata gives up for good, one whose connection
// ends tries again.
func (k *call) apiVersions(body []byte) error {
	a := k.api
	if k.version > a.max || k.version < a.min {
		k.version = 0
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = codeUnsupportedVersion
		resp.ApiKeys = append(resp.ApiKeys, announced(a.key, a.min, a.max))
		k.done(resp)
		return nil
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	if code := k.checkClient(req); code != 0 {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = code
		k.failed(code)
		k.done(resp)
		return nil
	}
	up := k.c.srv.o.Upstream
	if up.Versions() == nil {
		wait := time.NewTimer(patience)
		defer wait.Stop()
		select {
		case <-up.Ready():
		case <-wait.C:
		case <-k.c.done:
		}
	}
	k.answer = shapeVersions
	k.complete(k.c.announcement(), nil)
	return nil
}

// checkClient refuses names that are none (v3), and clients that mean another
// broker (v5, KIP-1242).
func (k *call) checkClient(req *kmsg.ApiVersionsRequest) int16 {
	if k.version >= 3 && !(softwareName.MatchString(req.ClientSoftwareName) && softwareName.MatchString(req.ClientSoftwareVersion)) {
		return codeInvalidRequest
	}
	if k.version < 5 {
		return 0
	}
	hasCluster, hasNode := req.ClusterID != nil, req.NodeID != -1
	cluster, known := k.c.srv.o.Upstream.Cluster()
	switch {
	case hasCluster != hasNode:
		return codeInvalidRequest
	case !hasCluster || !known:
		return 0
	case *req.ClusterID != cluster.ID || !k.c.standsFor(req.NodeID, cluster.NodeID):
		return codeRebootstrap
	}
	return 0
}

// standsFor says whether a client that means a broker is right here. behind is
// that of a sidecar, if it is known.
func (c *conn) standsFor(id, behind int32) bool {
	if c.srv.o.Gateway != nil {
		behind = c.port.node
	}
	return behind < 0 || id == behind
}

// announcement is the answer to ApiVersions that is made of one answer of the broker
// and of what is finalized here.
type announcement struct {
	of     *kmsg.ApiVersionsResponse
	epoch  int64 // of what is finalized here
	resp   kmsg.ApiVersionsResponse
	broker map[string]bool // features that are the broker's
}

// announcement makes the answer once for each answer of the broker, and each change here.
func (c *conn) announcement() *announcement {
	of, finalized := c.behindVersions(), c.srv.finalized()
	epoch := int64(0)
	if finalized != nil {
		epoch = finalized.Epoch
	}
	if a := c.port.announced.Load(); a != nil && a.of == of && a.epoch == epoch {
		return a
	}
	a := announce(c.srv.apis, of, c.srv.transactionVersion(finalized))
	a.epoch = epoch
	a.features(finalized, c.srv.transactionVersion(finalized), c.srv.o.Embedded)
	if c.srv.o.Embedded {
		a.forJava()
	}
	c.port.announced.Store(a)
	return a
}

// behindVersions are those of the broker that the client's port stands for: a
// cluster's brokers may be of several versions.
func (c *conn) behindVersions() *kmsg.ApiVersionsResponse {
	up := c.srv.o.Upstream
	if n := up.Node(c.port.node); n != nil {
		return n.Versions(c.context())
	}
	return up.Versions()
}

// shapeVersions copies the shared answer, since each client's has its own version.
func shapeVersions(k *call, resp group.Response, _ error) kmsg.Response {
	out := resp.(*announcement).resp
	if k.version < 4 { // older clients take a minimum of 0 for an error (KAFKA-17011)
		out.SupportedFeatures = slices.DeleteFunc(slices.Clone(out.SupportedFeatures), func(f kmsg.ApiVersionsResponseSupportedFeature) bool {
			return f.MinVersion == 0
		})
	}
	return &out
}

func announce(apis []api, of *kmsg.ApiVersionsResponse, transactionVersion int16) *announcement {
	a := &announcement{of: of, resp: kmsg.NewApiVersionsResponse()}
	theirs := map[int16]kmsg.ApiVersionsResponseApiKey{}
	if of != nil {
		for _, v := range of.ApiKeys {
			theirs[v.ApiKey] = v
		}
	}
	for i := range apis {
		l := &apis[i]
		minVersion, maxVersion := l.min, l.max
		if v, ok := theirs[l.key]; !l.own() && of != nil {
			if !ok {
				continue
			}
			minVersion, maxVersion = max(minVersion, v.MinVersion), min(maxVersion, v.MaxVersion)
		} else if !l.own() && l.optional {
			continue
		}
		if l.key == 0 && transactionVersion < 2 {
			maxVersion = min(maxVersion, addedByClient)
		}
		if minVersion <= maxVersion {
			a.resp.ApiKeys = append(a.resp.ApiKeys, announced(l.key, minVersion, maxVersion))
		}
	}
	return a
}

// forJava leaves out what the embedded broker answers with null where Kafka's brokers have a
// list: Kafka's Java clients and tools fail at that with a NullPointerException. Without
// DescribeTopicPartitions they ask for Metadata. Who sends these all the same is answered.
func (a *announcement) forJava() {
	const withoutConfigs = 4
	a.resp.ApiKeys = slices.DeleteFunc(a.resp.ApiKeys, func(v kmsg.ApiVersionsResponseApiKey) bool {
		return v.ApiKey == int16(kmsg.DescribeTopicPartitions)
	})
	for i := range a.resp.ApiKeys {
		if v := &a.resp.ApiKeys[i]; v.ApiKey == int16(kmsg.CreateTopics) {
			v.MaxVersion = min(v.MaxVersion, withoutConfigs)
		}
	}
}

func announced(key, minVersion, maxVersion int16) kmsg.ApiVersionsResponseApiKey {
	v := kmsg.NewApiVersionsResponseApiKey()
	v.ApiKey, v.MinVersion, v.MaxVersion = key, minVersion, maxVersion
	return v
}
