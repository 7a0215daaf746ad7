package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/coordinator/txn"
)

// Config is what kcoord runs with.
type Config struct {
	Listen    string // where Kafka clients connect
	Advertise string // where they are told to connect; "" for the listener's own address
	Admin     string // gRPC; "" is off
	HTTP      string // metrics and health; "" is off
	Data      string // folder of the coordinator's log; "" where there is none
	Upstream  string // the broker behind, or several as they were written
	Upstreams []string

	GatewayListen    Ports // where each broker of a cluster is stood in for; empty: a sidecar
	GatewayAdvertise Ports // where clients are told to find them; what is missing follows from the former

	LogLevel  string
	LogFormat string

	ShutdownTimeout time.Duration // bounds the drain
	TopicsRefresh   time.Duration // between two looks at the broker's topics
	TopicsMaxAge    time.Duration // how long the view serves while the broker cannot be reached

	NodeID              int // of the broker behind; -1: not said
	Shards              int // partitions of __consumer_offsets
	MaxRequestBytes     int
	MaxIdle             time.Duration
	MaxConnections      int
	MaxConnectionsPerIP int

	NumPartitions    int  // of topics that the embedded data plane creates
	AutoCreateTopics bool // whether it does so unasked

	Group group.Config

	TxnShards          int // partitions of __transaction_state
	TransactionVersion int // finalized
	Txn                txn.Config

	// Ignored are the keys of the properties file that are the broker's alone.
	Ignored []string
	// NotActedOn are the keys that were set, checked, and do nothing yet.
	NotActedOn []string

	said map[string]Setting // by key, those that count
}

// Setting is one key's value and where it was said.
type Setting struct {
	Key, Value string
	From       string // "in FILE line 3", "in the environment as KCOORD_LISTEN", "as --listen"
	broker     bool   // from a file that is the broker's too
}

// Sources are the places where settings are said.
type Sources struct {
	Flags      []Setting // in the order given; of two for one key the later one counts
	Env        []string  // as os.Environ has it
	YAML       string    // path of a file, or ""
	Properties string    // path of a file, or ""
}

// Load reads the sources and checks what they say.
func Load(from Sources) (Config, error) {
	settings, err := from.settings()
	if err != nil {
		return Config{}, err
	}
	said := map[string]Setting{}
	ignored := map[string]bool{}
	for _, s := range settings {
		if s.broker && isBrokers(s.Key) {
			ignored[s.Key] = true
			continue
		}
		k, ok := byName[s.Key]
		if !ok {
			return Config{}, unknown(s)
		}
		// Also one that is overruled must be right.
		if err := k.apply(&Config{}, s.Value); err != nil {
			return Config{}, fmt.Errorf("config: %s = %q %s: %w", s.Key, s.Value, s.From, err)
		}
		said[s.Key] = s
	}
	c, err := typed(said)
	if err != nil {
		return Config{}, err
	}
	c.Ignored = slices.Sorted(maps.Keys(ignored))
	for name := range said {
		if byName[name].Later {
			c.NotActedOn = append(c.NotActedOn, name)
		}
	}
	slices.Sort(c.NotActedOn)
	return c, nil
}

// typed makes a Config of what was said, and the defaults of the rest.
func typed(said map[string]Setting) (Config, error) {
	c := Config{said: said}
	for i := range table {
		k := &table[i]
		s := effective(said, k.Name)
		if err := k.apply(&c, s.Value); err != nil {
			return Config{}, fmt.Errorf("config: %s = %q %s: %w", s.Key, s.Value, s.From, err)
		}
	}
	if err := inOrder(said); err != nil {
		return Config{}, err
	}
	return c, c.gatewayAgrees()
}

// settings are those of all sources, the ones that win last.
func (from Sources) settings() ([]Setting, error) {
	env := fromEnv(from.Env)
	file, env := take(env, "config")
	var yaml, properties []Setting
	var err error
	if file = cmp.Or(from.YAML, file); file != "" {
		if yaml, err = readYAML(file); err != nil {
			return nil, err
		}
	}
	byYAML, yaml := take(yaml, "properties")
	byEnv, env := take(env, "properties")
	if file = cmp.Or(from.Properties, byEnv, byYAML); file != "" {
		if properties, err = readProperties(file); err != nil {
			return nil, err
		}
	}
	return slices.Concat(properties, yaml, env, from.Flags), nil
}

// take removes a key from settings: one that names a file rather than sets something.
func take(settings []Setting, key string) (value string, rest []Setting) {
	for _, s := range settings {
		if s.Key == key {
			value = s.Value
		} else {
			rest = append(rest, s)
		}
	}
	return value, rest
}

// inOrder checks keys of which one may not exceed another. Where one of them was
// not said, its default counts.
func inOrder(said map[string]Setting) error {
	for _, pair := range ascending {
		lo, hi := effective(said, pair[0]), effective(said, pair[1])
		l, h := mustNumber(lo), mustNumber(hi)
		if l <= h {
			continue
		}
		if lo.From == "" {
			return fmt.Errorf("config: %s = %d %s: must be %d or more, which is %s", hi.Key, h, hi.From, l, lo.Key)
		}
		return fmt.Errorf("config: %s = %d %s: must be %d or less, which is %s", lo.Key, l, lo.From, h, hi.Key)
	}
	return nil
}

func effective(said map[string]Setting, key string) Setting {
	if s, ok := said[key]; ok {
		return s
	}
	return Setting{Key: key, Value: byName[key].Default}
}

// mustNumber reads a value that its key has let pass.
func mustNumber(s Setting) int64 {
	n, err := number(s.Value)
	if err != nil {
		panic("config: " + s.Key + " is not a number")
	}
	return n
}
