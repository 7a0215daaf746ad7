package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/kcoord/kcoord/config"
	"github.com/kcoord/kcoord/internal/table"
)

type configCommand struct {
	Explain explainCommand `cmd:"" help:"Say what a setting is, where it is said, and whether it can change."`
}

type explainCommand struct {
	serverFlags
	Upstream *string `placeholder:"HOST:PORT" help:"The broker behind."`
	Output   string  `short:"o" enum:"table,wide,json" default:"table" help:"table (80 columns), wide or json."`
	Key      string  `arg:"" optional:"" help:"A key; without it, what is said of all."`
}

// Run explains what a kcoord that was started with these flags, here and now, would run with.
func (e *explainCommand) Run() error {
	c, err := e.load(flagSetting("upstream", e.Upstream)...)
	if err != nil {
		return err
	}
	keys := config.Keys()
	if e.Key != "" {
		keys = []string{e.Key}
	}
	var all []config.Explanation
	for _, key := range keys {
		x, err := c.Explain(key)
		if err != nil {
			return mistake{err}
		}
		all = append(all, x)
	}
	switch {
	case e.Output == "json":
		return explainJSON(all)
	case e.Key != "":
		return explainOne(all[0])
	}
	t := table.New("KEY", "VALUE", "SAID")
	for _, x := range all {
		t.Row(x.Name, x.Value, cmp.Or(x.From, "default"))
	}
	width := 80
	if e.Output == "wide" {
		width = 0
	}
	return t.Print(os.Stdout, width)
}

func explainJSON(all []config.Explanation) error {
	out := json.NewEncoder(os.Stdout)
	for _, x := range all {
		err := out.Encode(map[string]any{
			"key": x.Name, "value": x.Value, "default": x.Default, "source": cmp.Or(x.From, "default"), "reloads": x.Reloads,
			"allowed": x.Allowed, "acted_on": !x.Later, "kafka": x.Kafka,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func explainOne(x config.Explanation) error {
	shown := func(s string) string { return cmp.Or(s, "(empty)") }
	change := "a new start"
	if x.Reloads {
		change = "SIGHUP"
	}
	lines := []struct{ name, text string }{
		{"value", shown(x.Value)}, {"said", cmp.Or(x.From, "nowhere: the default counts")}, {"default", shown(x.Default)},
		{"allowed", x.Allowed}, {"changes by", change},
	}
	if x.Later {
		lines = append(lines, struct{ name, text string }{"so far", "checked, and not acted on yet"})
	}
	fmt.Println(x.Name)
	for _, l := range lines {
		fmt.Printf("  %-10s  %s\n", l.name, l.text)
	}
	fmt.Println(wrapped(strings.ReplaceAll(x.Doc, "`", ""), 80))
	return nil
}

// wrapped breaks a text into lines.
func wrapped(text string, width int) string {
	var b strings.Builder
	at := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case at == 0:
		case at+1+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
