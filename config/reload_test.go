package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "a.properties", "group.max.size=1\noffsets.topic.num.partitions=7\nlog.level=warn\n")
	flags := []Setting{{Key: "log.level", Value: "debug", From: "as --log-level"}}
	ran := load(t, Sources{Flags: flags, Properties: file})
	write(t, dir, "a.properties", "group.max.size=2\noffsets.topic.num.partitions=8\nlog.level=error\noffsets.retention.minutes=3\nbroker.rack=a\n")
	runs, changes := ran.Reload(load(t, Sources{Flags: flags, Properties: file}))
	if runs.Group.MaxSize != 2 || runs.Group.Retention != 3*time.Minute || runs.Shards != 7 || runs.LogLevel != "debug" || len(runs.Ignored) != 1 {
		t.Errorf("%+v", runs)
	}
	var said []string
	for _, c := range changes {
		said = append(said, strings.ReplaceAll(c.String(), file, "FILE"))
	}
	want := []string{
		`group.max.size = "2" in FILE line 1, was "1"`,
		`offsets.retention.minutes = "3" in FILE line 4, was "10080"`,
		`offsets.topic.num.partitions = "8" in FILE line 2, was "7": it changes when kcoord is started anew`,
	}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("%q\nwant %q", said, want)
	}
	// What could not change is told again; what is said no more has its default again.
	write(t, dir, "a.properties", "offsets.topic.num.partitions=8\n")
	runs, changes = runs.Reload(load(t, Sources{Flags: flags, Properties: file}))
	if len(changes) != 3 || runs.Group.MaxSize != 1<<31-1 || changes[0].String() != `group.max.size = "2147483647" by default, was "2"` {
		t.Errorf("%v", changes)
	}
	if _, changes = runs.Reload(runs); len(changes) != 0 {
		t.Errorf("nothing is said anew: %v", changes)
	}
}

func TestExplain(t *testing.T) {
	c := load(t, Sources{Env: []string{"KCOORD_GROUP_MAX_SIZE=3"}})
	e, err := c.Explain("group.max.size")
	if err != nil || e.Value != "3" || e.From != "in the environment as KCOORD_GROUP_MAX_SIZE" || e.Default != "2147483647" || !e.Reloads || !e.Kafka {
		t.Errorf("%+v %v", e, err)
	}
	if e, err = c.Explain("data"); err != nil || e.From != "" || e.Reloads {
		t.Errorf("%+v %v", e, err)
	}
	if _, err = c.Explain("group.max.sise"); err == nil || !strings.Contains(err.Error(), "did you mean group.max.size?") {
		t.Error(err)
	}
	for _, k := range Keys() {
		if _, err := c.Explain(k); err != nil {
			t.Error(err)
		}
	}
	for _, name := range reloaded {
		if k := byName[name]; k == nil || k.Later {
			t.Errorf("%s is no key that could be reloaded", name)
		}
	}
}
