package config

import (
	"math"
	"slices"
	"time"
)

// table is every key, in the order of the documentation: kcoord's own first,
// then Kafka's, with Kafka's defaults and bounds as of 4.4.0.
var table = func() []Key {
	all := slices.Concat(own(), legacyCommits(), kafkas())
	for i := range all {
		all[i].Reloads = slices.Contains(reloaded, all[i].Name)
	}
	return all
}()

// reloaded are the keys that a SIGHUP reads anew.
var reloaded = []string{
	"log.level", "shutdown.timeout.ms", "topics.refresh.interval.ms", "topics.max.age.ms",
	"socket.request.max.bytes", "connections.max.idle.ms", "max.connections", "max.connections.per.ip",
	"group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.initial.rebalance.delay.ms", "group.max.size",
	"offset.metadata.max.bytes", "offsets.retention.minutes", "offsets.retention.check.interval.ms",
	"transaction.offset.commit.legacy", "transaction.offset.commit.legacy.groups",
}

// byName finds a key.
var byName = func() map[string]*Key {
	m := make(map[string]*Key, len(table))
	for i := range table {
		m[table[i].Name] = &table[i]
	}
	return m
}()

// ascending are pairs of keys of which the first may not exceed the second.
var ascending = [][2]string{
	{"group.min.session.timeout.ms", "group.max.session.timeout.ms"},
	{"group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"},
	{"group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"},
	{"group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"group.consumer.min.assignment.interval.ms", "group.consumer.assignment.interval.ms"},
	{"group.consumer.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
}

func own() []Key {
	return []Key{
		address("listen", "127.0.0.1:9092", func(c *Config) *string { return &c.Listen },
			"Where Kafka clients connect. Port 0 takes a free one."),
		address("advertise", "", func(c *Config) *string { return &c.Advertise },
			"The address that clients are told to connect to. Empty: the one that kcoord listens on."),
		address("admin", "", func(c *Config) *string { return &c.Admin },
			"Where the gRPC admin API listens. Empty: off."),
		address("http", "", func(c *Config) *string { return &c.HTTP },
			"Where `/metrics`, `/livez`, `/readyz` and `/debug/pprof/` are served. Empty: off."),
		path("data", func(c *Config) *string { return &c.Data },
			"The folder of the coordinator's log. `serve` needs one; `dev` without one uses a temporary folder that it removes."),
		upstream("The broker behind `kcoord serve`; for a gateway, one or more brokers of the cluster to begin with. `dev` has its data plane in process."),
		ports("gateway.listen", func(c *Config) *Ports { return &c.GatewayListen },
			"Gateway mode: where kcoord listens in each broker's place, by the brokers' node ids: `1=0.0.0.0:9101,2=0.0.0.0:9102`. "+
				"`*=0.0.0.0:9100` is for all others, at that port plus the node id (broker 7 at 9107), opened when the broker is first seen. "+
				"A broker without a port is not shown to clients, and a log line names it. Empty: a sidecar, whose broker advertises kcoord's address."),
		ports("gateway.advertise", func(c *Config) *Ports { return &c.GatewayAdvertise },
			"The addresses that clients are told for each broker, where they are not those of `gateway.listen`: behind a port mapping, say. "+
				"A broker that is not named has the port of `gateway.listen` and its host, or, where that is 0.0.0.0, the host that the client connected to."),
		choice("log.level", func(c *Config) *string { return &c.LogLevel },
			"The least level that is logged.", "info", "trace", "debug", "warn", "error"),
		choice("log.format", func(c *Config) *string { return &c.LogFormat },
			"How log lines look: `console` for people, `json` for programs, `auto` by whether stderr is a terminal.", "auto", "console", "json"),
		span("shutdown.timeout.ms", 10_000, 0, maxInt32, func(c *Config) *time.Duration { return &c.ShutdownTimeout },
			"How long requests in flight may take to end after SIGTERM or SIGINT. A second signal ends the process at once."),
		span("topics.refresh.interval.ms", 1_000, 10, maxInt32, func(c *Config) *time.Duration { return &c.TopicsRefresh },
			"How often kcoord looks at the broker's topics."),
		span("topics.max.age.ms", 300_000, 10, maxInt32, func(c *Config) *time.Duration { return &c.TopicsMaxAge },
			"How long that view serves to check commits while the broker cannot be reached."),
		boolean("transaction.stale.connection.fencing", true, func(c *Config) *bool { return &c.Txn.FenceStale },
			"Whether an EndTxn, AddPartitionsToTxn or AddOffsetsToTxn is refused, and its connection closed, that comes on an older connection than its "+
				"producer's latest: it is of a transaction that is over. Off where proxies between clients and kcoord reorder connections. Who ends "+
				"what other producers began, as Flink's committer does, may be refused once, connects anew and is taken: off spares that."),
		whole("transaction.version", 2, 1, 2, func(c *Config) *int { return &c.TransactionVersion },
			"The finalized `transaction.version` that clients are told. With 2 the end of each transaction bumps its producer's epoch, and Produce adds "+
				"partitions to it (KIP-890); 1 leaves both out, and announces Produce up to version 11."),
	}
}

func kafkas() []Key {
	keys := []Key{
		// Connections.
		whole("socket.request.max.bytes", 104857600, 1, maxInt32, func(c *Config) *int { return &c.MaxRequestBytes },
			"The largest request. A longer one closes its connection."),
		span("connections.max.idle.ms", 600_000, 1, math.MaxInt64, func(c *Config) *time.Duration { return &c.MaxIdle },
			"A connection without requests for so long is closed."),
		whole("max.connections", maxInt32, 1, maxInt32, func(c *Config) *int { return &c.MaxConnections },
			"The most connections at a time. Fewer where the limit of open files is lower, of which the log keeps some."),
		whole("max.connections.per.ip", maxInt32, 1, maxInt32, func(c *Config) *int { return &c.MaxConnectionsPerIP },
			"The most connections at a time from one address."),
		whole("node.id", -1, -1, maxInt32, func(c *Config) *int { return &c.NodeID },
			"The id of the broker behind, which is kcoord's own towards clients. -1: the broker is asked."),
		// Classic groups.
		span("group.min.session.timeout.ms", 6_000, 0, maxInt32, func(c *Config) *time.Duration { return &c.Group.MinSessionTimeout },
			"The shortest session timeout that a member of a classic group may ask for."),
		span("group.max.session.timeout.ms", 1_800_000, 0, maxInt32, func(c *Config) *time.Duration { return &c.Group.MaxSessionTimeout },
			"The longest one."),
		span("group.initial.rebalance.delay.ms", 3_000, 0, maxInt32, func(c *Config) *time.Duration { return &c.Group.InitialRebalanceDelay },
			"How long an empty group waits for more members before its first rebalance."),
		whole("group.max.size", maxInt32, 1, maxInt32, func(c *Config) *int { return &c.Group.MaxSize },
			"The most members of a classic group."),
		// Offsets.
		whole("offset.metadata.max.bytes", 4096, 0, maxInt32, func(c *Config) *int { return &c.Group.MetadataMaxChars },
			"The longest metadata of a committed offset, in UTF-16 units, as in Kafka."),
		span("offsets.retention.minutes", 10080, 1, maxInt32, func(c *Config) *time.Duration { return &c.Group.Retention },
			"How long offsets outlive their last commit, or their group's last member (KIP-211)."),
		span("offsets.retention.check.interval.ms", 600_000, 1, math.MaxInt64, func(c *Config) *time.Duration { return &c.Group.RetentionCheckInterval },
			"How often it is looked for expired offsets."),
		whole("offsets.topic.num.partitions", 50, 1, 16384, func(c *Config) *int { return &c.Shards },
			"Into how many shards groups are divided. It cannot be changed for a data folder that has been used."),
		// The embedded data plane of dev.
		whole("num.partitions", 1, 1, maxInt32, func(c *Config) *int { return &c.NumPartitions },
			"`dev` alone: partitions of a topic whose creator does not say how many."),
		boolean("auto.create.topics.enable", true, func(c *Config) *bool { return &c.AutoCreateTopics },
			"`dev` alone: whether a topic is created when a client asks for it."),
	}
	keys = append(keys, consumerGroups()...)
	keys = append(keys, transactions()...)
	for i := range keys {
		keys[i].Kafka = true
	}
	return keys
}

// consumerGroups are the keys of the protocol of KIP-848.
func consumerGroups() []Key {
	ms := func(name string, def int64, doc string) Key { return span(name, def, 1, maxInt32, nil, doc) }
	return []Key{
		words("group.coordinator.rebalance.protocols", "classic,consumer,streams",
			"The protocols that groups may use.", "classic", "consumer", "share", "streams"),
		ms("group.consumer.session.timeout.ms", 45_000, "The session timeout of members of consumer groups."),
		ms("group.consumer.min.session.timeout.ms", 45_000, "The least that a group may set it to."),
		ms("group.consumer.max.session.timeout.ms", 60_000, "The most that a group may set it to."),
		ms("group.consumer.heartbeat.interval.ms", 5_000, "How often members of consumer groups are told to send heartbeats."),
		ms("group.consumer.min.heartbeat.interval.ms", 5_000, "The least that a group may set it to."),
		ms("group.consumer.max.heartbeat.interval.ms", 15_000, "The most that a group may set it to."),
		whole("group.consumer.max.size", maxInt32, 1, maxInt32, nil, "The most members of a consumer group."),
		words("group.consumer.assignors", "uniform,range", "The assignors, the default one first.", "uniform", "range"),
		choice("group.consumer.migration.policy", nil, "Which conversions between classic and consumer groups happen while they have members.",
			"bidirectional", "upgrade", "downgrade", "disabled"),
		span("group.consumer.regex.refresh.interval.ms", 600_000, 10_000, maxInt32, nil, "How often regular expressions are resolved anew."),
		span("group.consumer.assignment.interval.ms", 1_000, 0, maxInt32, nil, "The least time between two assignments of a group."),
		span("group.consumer.min.assignment.interval.ms", 0, 0, maxInt32, nil, "The least that a group may set it to."),
		span("group.consumer.max.assignment.interval.ms", 15_000, 0, maxInt32, nil, "The most that a group may set it to."),
		boolean("group.consumer.assignor.offload.enable", true, nil, "Whether assignments are computed beside the shard."),
	}
}

func transactions() []Key {
	return []Key{
		whole("transaction.state.log.num.partitions", 50, 1, 16384, func(c *Config) *int { return &c.TxnShards },
			"Into how many shards transactional ids are divided. It cannot be changed for a data folder that has been used."),
		span("transaction.max.timeout.ms", 900_000, 1, maxInt32, func(c *Config) *time.Duration { return &c.Txn.MaxTimeout }, "The longest transaction timeout that a producer may ask for."),
		span("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, 1, maxInt32, func(c *Config) *time.Duration { return &c.Txn.AbortInterval }, "How often it is looked for timed-out transactions."),
		span("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, 1, maxInt32, func(c *Config) *time.Duration { return &c.Txn.RemoveInterval }, "How often it is looked for expired transactional ids."),
		span("transactional.id.expiration.ms", 604_800_000, 1, maxInt32, func(c *Config) *time.Duration { return &c.Txn.Expiration }, "How long a transactional id outlives its last transaction."),
		boolean("transaction.two.phase.commit.enable", false, nil, "Whether transactions without a timeout are allowed (KIP-939)."),
	}
}
