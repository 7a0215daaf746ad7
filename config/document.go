package config

import (
	"fmt"
	"io"
	"strings"
)

// Document writes docs/configuration.md.
func Document(w io.Writer) error {
	d := document{w: w}
	d.line("<!-- Generated from the table in config/table.go: go test ./config -update -->")
	d.line("# Configuration")
	d.line("")
	d.line("A setting is said, the stronger way first:")
	d.line("")
	d.line("1. on the command line: `--set group.max.size=20`, or `--listen`, `--advertise`, `--admin`, `--http`, `--data`,")
	d.line("   `--upstream`, `--log-level` and `--log-format`, which are the keys of these names;")
	d.line("2. in the environment: `KCOORD_GROUP_MAX_SIZE=20`;")
	d.line("3. in a YAML file, `--config FILE` (or `KCOORD_CONFIG`): `group.max.size: 20`, nested or not; its key `properties`")
	d.line("   names a file of the next kind;")
	d.line("4. in a file of Kafka's format, `--properties FILE` (or `KCOORD_PROPERTIES`): `group.max.size=20`. It may be the")
	d.line("   broker's own server.properties: keys that are the broker's alone are left out, and a log line names them;")
	d.line("5. else the default holds.")
	d.line("")
	d.line("A key that is unknown, or a value that is not allowed, keeps kcoord from starting. Keys marked ° are accepted and")
	d.line("checked, and **not yet acted on**: what they are about is still to come. Keys marked ↻ change while kcoord runs: a")
	d.line("SIGHUP has it read its files anew, and say in its log what changed and what needs a new start.")
	d.line("")
	d.line("`kcoord config explain KEY`, with the flags and in the environment of kcoord itself, says what counts for a key and where")
	d.line("it is said; without KEY, for all of them.")
	d.line("")
	d.line("## kcoord's own keys")
	d.section(func(k *Key) bool { return !k.Kafka })
	d.line("")
	d.line("## Kafka's keys")
	d.line("")
	d.line("Names, defaults and bounds are those of Apache Kafka 4.4.0 (but `max.connections` and `max.connections.per.ip`: not 0).")
	d.section(func(k *Key) bool { return k.Kafka })
	return d.err
}

type document struct {
	w   io.Writer
	err error
}

func (d *document) line(s string) {
	if d.err == nil {
		_, d.err = fmt.Fprintln(d.w, s)
	}
}

func (d *document) section(of func(*Key) bool) {
	d.line("")
	d.line("| Key | Default | Allowed | |")
	d.line("|---|---|---|---|")
	for i := range table {
		k := &table[i]
		if !of(k) {
			continue
		}
		name, def := "`"+k.Name+"`", ""
		if k.Later {
			name += " °"
		}
		if k.Reloads {
			name += " ↻"
		}
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		d.line("| " + strings.Join([]string{name, def, k.Allowed, k.Doc}, " | ") + " |")
	}
}
