package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versions looks whether the broker knows what kcoord asks of it.
func (c *checking) versions(ctx context.Context) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "kcoord-check", "1"
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		c.add(Fail, "The broker does not say which versions it knows: %s.", words(err))
		return
	}
	highest := map[int16]int16{}
	for _, k := range resp.ApiKeys {
		highest[k.ApiKey] = k.MaxVersion
	}
	metadata, has := highest[3]
	switch {
	case !has || metadata < 4:
		c.add(Fail, "The broker is too old: it knows Metadata to version %d, and kcoord needs 4 (Kafka 0.11).", metadata)
	case metadata < 10:
		c.add(Warn, "The broker knows no topic ids (Metadata to version %d, ids come with Kafka 2.8): a topic that is deleted and made again within %s is taken for the old one.", metadata, time.Second)
	default:
		c.add(OK, "The broker's versions are new enough (Metadata to version %d).", metadata)
	}
}

// advertised looks where clients would go: those that have asked for Metadata know the
// coordinator by its node id, and go to that node's address.
func (c *checking) advertised(context.Context) {
	var at []string
	for _, b := range c.meta.Brokers {
		address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		if address == c.o.Advertise {
			c.add(OK, "Broker %d advertises kcoord's address, %s.", b.NodeID, address)
			return
		}
		at = append(at, fmt.Sprintf("%d at %s", b.NodeID, address))
	}
	if len(at) == 1 {
		c.add(Warn, "The broker advertises another address than kcoord's (%s): clients would go past kcoord. Set advertised.listeners=PLAINTEXT://%s and restart it when kcoord is to take over.", at[0], c.o.Advertise)
		return
	}
	c.add(Fail, "None of the brokers (%s) advertises kcoord's address, %s: clients would go past kcoord, and which broker is behind it cannot be told. Set the advertised.listeners of that broker, or run kcoord as a gateway (gateway.listen).",
		strings.Join(at, ", "), c.o.Advertise)
}

// settings looks at what the broker is configured with.
func (c *checking) settings(ctx context.Context) {
	id := int32(0)
	for i, b := range c.meta.Brokers {
		if i == 0 || net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))) == c.o.Advertise {
			id = b.NodeID
		}
	}
	configs, err := c.admin.DescribeBrokerConfigs(ctx, id)
	var of kadm.ResourceConfig
	if err == nil {
		of, err = configs.On(strconv.Itoa(int(id)), nil)
		err = errors.Join(err, of.Err)
	}
	if err != nil {
		c.add(Warn, "The broker's settings cannot be read (%s): the right DescribeConfigs on the cluster is missing. See to it that transaction.partition.verification.enable is false.", words(err))
		return
	}
	values := map[string]string{}
	for _, e := range of.Configs {
		if e.Value != nil {
			values[e.Key] = *e.Value
		}
	}
	switch v, has := values["transaction.partition.verification.enable"]; {
	case !has:
		c.add(OK, "The broker does not verify transactions' partitions (Kafka before 3.6).")
	case v == "false":
		c.add(OK, "transaction.partition.verification.enable is false.")
	default:
		c.add(Warn, "transaction.partition.verification.enable is %s: the broker asks its own coordinator about each transactional producer, which kcoord will be. Set it to false before transactions go through kcoord.", v)
	}
	if v, has := values["offsets.topic.num.partitions"]; has && v != "50" {
		c.add(Warn, "The broker has offsets.topic.num.partitions=%s: hand its server.properties to kcoord with --properties, so that kcoord has the same, before the data folder is first used.", v)
	}
}

// rights looks what the connection may do.
func (c *checking) rights(ctx context.Context) {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.IncludeClusterAuthorizedOperations = true
	resp, err := req.RequestWith(ctx, c.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		c.add(Warn, "What this connection may do cannot be told: %s.", words(err))
		return
	}
	const clusterAction, alter = 9, 7
	may := func(op int) bool { return resp.ClusterAuthorizedOperations>>op&1 == 1 }
	switch {
	case resp.ClusterAuthorizedOperations == -1<<31:
		c.add(Warn, "The broker does not say what this connection may do. For transactions it needs ClusterAction or Alter on the cluster.")
	case may(clusterAction) || may(alter):
		c.add(OK, "This connection may write transaction markers (ClusterAction or Alter on the cluster).")
	default:
		c.add(Warn, "This connection has neither ClusterAction nor Alter on the cluster: transactions could not be ended.")
	}
}

// groups looks who would be cut off from offsets that are not copied yet.
func (c *checking) groups(ctx context.Context) {
	listed, err := c.admin.ListGroups(ctx)
	if err != nil {
		c.add(Warn, "The broker's groups cannot be listed: %s.", words(err))
		return
	}
	var active, others []string
	for _, g := range listed.Sorted() {
		if g.GroupType != "" && g.GroupType != "classic" {
			others = append(others, fmt.Sprintf("%s (%s)", g.Group, g.GroupType))
		}
		if g.State != "Empty" && g.State != "Dead" && g.State != "" {
			active = append(active, g.Group)
		}
	}
	switch {
	case len(listed) == 0:
		c.add(OK, "The broker has no groups whose offsets would have to be copied.")
	case len(active) == 0:
		c.add(OK, "Nobody is in one of the broker's groups (%d): kcoord offsets import copies their offsets.", len(listed))
	default:
		c.add(Warn, "Of the broker's groups (%d), these have members (%d): %s. Stop them before the last kcoord offsets import, or their offsets move on.",
			len(listed), len(active), some(active))
	}
	if len(others) > 0 {
		c.add(Warn, "These of the broker's groups (%d) use a protocol that kcoord does not serve yet: %s. Give their clients group.protocol=classic; share groups have no other.",
			len(others), some(others))
	}
}

// some are the first few names of a list, and how many there are besides.
func some(names []string) string {
	if more := len(names) - 5; more > 0 {
		names = append(slices.Clone(names[:5]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
