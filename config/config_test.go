package config

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func TestDefaultsAreKafkas(t *testing.T) {
	c := load(t, Sources{})
	if c.Listen != "127.0.0.1:9092" || c.Shards != 50 || c.Group.MaxSize != 1<<31-1 || !c.AutoCreateTopics {
		t.Errorf("unexpected defaults: %+v", c)
	}
	if c.Group.Retention != 7*24*time.Hour || c.Group.RetentionCheckInterval != 10*time.Minute {
		t.Errorf("retention %s, looked at every %s", c.Group.Retention, c.Group.RetentionCheckInterval)
	}
}

func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	properties := write(t, dir, "a.properties", "group.max.size=1\ngroup.min.session.timeout.ms=1\nnum.partitions=1\noffset.metadata.max.bytes=1\n")
	yaml := write(t, dir, "a.yaml", "group:\n  max.size: 2\n  min: {session: {timeout.ms: 2}}\nnum.partitions: 2\nproperties: a.properties\n")
	c := load(t, Sources{
		Flags: []Setting{{Key: "group.max.size", Value: "4"}},
		Env:   []string{"KCOORD_GROUP_MAX_SIZE=3", "KCOORD_GROUP_MIN_SESSION_TIMEOUT_MS=3", "KCOORD_CONFIG=" + yaml, "OTHER=1"},
	})
	if c.Group.MaxSize != 4 || c.Group.MinSessionTimeout != 3*time.Millisecond || c.NumPartitions != 2 || c.Group.MetadataMaxChars != 1 {
		t.Errorf("flag 4, environment 3, YAML 2, properties 1: got %d, %s, %d, %d",
			c.Group.MaxSize, c.Group.MinSessionTimeout, c.NumPartitions, c.Group.MetadataMaxChars)
	}
	if load(t, Sources{YAML: yaml, Properties: properties}).Group.MaxSize != 2 {
		t.Error("the YAML file does not win over the properties file")
	}
}

func TestBrokersOwnFile(t *testing.T) {
	c := load(t, Sources{Properties: "testdata/broker.properties"})
	if c.NumPartitions != 3 || c.NodeID != 1 || c.Group.InitialRebalanceDelay != 0 || c.Group.Retention != time.Hour || c.Group.MaxSize != 11 {
		t.Errorf("not read: %+v", c)
	}
	want := "advertised.listeners controller.quorum.bootstrap.servers inter.broker.protocol.version " +
		"listener.name.internal.ssl.keystore.location listeners log.dirs process.roles"
	if got := strings.Join(c.Ignored, " "); got != want {
		t.Errorf("ignored %s, want %s", got, want)
	}
}

func TestConformFileLoads(t *testing.T) {
	c := load(t, Sources{Properties: "testdata/conform.properties"})
	if c.Group.MinSessionTimeout != 500*time.Millisecond || c.Group.MaxSize != 20 || len(c.Ignored) != 0 {
		t.Errorf("not read: %+v", c)
	}
	if len(c.NotActedOn) == 0 {
		t.Error("keys that are not acted on are not told")
	}
}

func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	properties, yaml := Sources{Properties: "a.properties"}, Sources{YAML: "a.yaml"}
	for name, tc := range map[string]struct {
		from Sources
		text string // of the file
		want string
	}{
		"misspelt": {properties, "\n# x\ngroup.max.sise=20",
			`config: unknown key "group.max.sise" in a.properties line 3: did you mean group.max.size?`},
		"misspelt in YAML": {yaml, "listen: 127.0.0.1:1\ngroup:\n  max:\n    sise: 20\n",
			`config: unknown key "group.max.sise" in a.yaml line 4: did you mean group.max.size?`},
		"misspelt in the environment": {Sources{Env: []string{"KCOORD_LISTN=x"}}, "",
			`config: unknown key "listn" in the environment as KCOORD_LISTN: did you mean listen?`},
		"like nothing": {properties, "completely.different.thing=1",
			`config: unknown key "completely.different.thing" in a.properties line 1: docs/configuration.md lists the keys`},
		"not a number": {properties, "group.max.size=many",
			`config: group.max.size = "many" in a.properties line 1: must be a whole number from 1 to 2147483647`},
		"out of range, of a later feature": {properties, "transaction.max.timeout.ms=0",
			`config: transaction.max.timeout.ms = "0" in a.properties line 1: must be a whole number of milliseconds from 1 to 2147483647`},
		"not an address": {Sources{Flags: []Setting{{Key: "listen", Value: "9092", From: "as --listen"}}}, "",
			`config: listen = "9092" as --listen: must be HOST:PORT`},
		"not one of": {Sources{Flags: []Setting{{Key: "log.level", Value: "loud", From: "as --log-level"}}}, "",
			`config: log.level = "loud" as --log-level: must be one of info, trace, debug, warn, error`},
		"the broker's, said to kcoord": {Sources{Flags: []Setting{{Key: "log.dirs", Value: "x", From: "as --set"}}}, "",
			`config: log.dirs as --set is a setting of the broker, which kcoord has no use for: leave it out`},
		"in the wrong order": {properties, "group.min.session.timeout.ms=1800001",
			`config: group.min.session.timeout.ms = 1800001 in a.properties line 1: must be 1800000 or less, which is group.max.session.timeout.ms`},
		"no such file":   {Sources{Properties: "none.properties"}, "", `config: cannot read none.properties: no such file or directory`},
		"not YAML":       {yaml, "a: b: c", `config: a.yaml: mapping values are not allowed in this context`},
		"not a mapping":  {yaml, "hello", `config: a.yaml line 1: must be keys with values, such as "listen: 127.0.0.1:9092"`},
		"not an escape":  {properties, `listen=\u12`, `config: a.properties line 1: \u needs four hexadecimal digits`},
		"said twice":     {yaml, "group:\n  max.size: 5\n  max:\n    size: 6", `config: a.yaml line 4: group.max.size is said in line 2 already`},
		"two documents":  {yaml, "listen: a:1\n---\nadmin: a:2", `config: a.yaml line 2: a second document begins: put all into one`},
		"half of two":    {yaml, "listen: a:1\n---\n{", `config: a.yaml: line 3: did not find expected node content`},
		"list of things": {yaml, "listen:\n- {a: b}", `config: a.yaml line 2: listen: its items must be plain values`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.text != "" {
				write(t, ".", cmp.Or(tc.from.YAML, tc.from.Properties), tc.text)
			}
			_, err := Load(tc.from)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestServiceLinksAreNotSettings(t *testing.T) {
	load(t, Sources{Env: []string{
		"KCOORD_PORT=tcp://10.0.0.1:9092", "KCOORD_PORT_9092_TCP_ADDR=10.0.0.1", "KCOORD_SERVICE_HOST=10.0.0.1",
		"KCOORD_ADMIN_SERVICE_PORT_GRPC=9094",
	}})
}

func TestEveryKeyIsKnownOnce(t *testing.T) {
	if len(byName) != len(table) {
		t.Error("a key is in the table twice")
	}
	for name := range byName {
		if isBrokers(name) {
			t.Errorf("%s is in the table and in brokerkeys.txt", name)
		}
	}
}

func TestDocumentationIsCurrent(t *testing.T) {
	const file = "../docs/configuration.md"
	var want bytes.Buffer
	if err := Document(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the table says (%v): go test ./config -update", file, err)
	}
}

func load(t *testing.T, from Sources) Config {
	t.Helper()
	c, err := Load(from)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
