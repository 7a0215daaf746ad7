package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a file of keys and values. Keys may be nested where their
// names have dots: "group.max.size: 20" and "group: {max: {size: 20}}" say the
// same. It works on yaml's nodes, since they know their lines and keep the text
// of numbers as it was written.
func readYAML(file string) ([]Setting, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, cannotRead(file, err)
	}
	defer f.Close()
	y := yamlFile{name: file, lines: map[string]int{}}
	decoder := yaml.NewDecoder(f)
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, y.unreadable(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, y.wrong(&more, "a second document begins: put all into one")
	} else if !errors.Is(err, io.EOF) {
		return nil, y.unreadable(err)
	}
	if err := y.flatten("", doc.Content[0]); err != nil {
		return nil, err
	}
	return y.settings, nil
}

type yamlFile struct {
	name     string
	settings []Setting
	lines    map[string]int // where each key was said
}

func (y *yamlFile) flatten(prefix string, n *yaml.Node) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if prefix != "" {
				key = prefix + "." + key
			}
			if err := y.flatten(key, n.Content[i+1]); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		var items []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return y.wrong(item, "%s: its items must be plain values", prefix)
			}
			items = append(items, item.Value)
		}
		return y.add(prefix, strings.Join(items, ","), n)
	case yaml.ScalarNode:
		if prefix == "" {
			return y.wrong(n, "must be keys with values, such as \"listen: 127.0.0.1:9092\"")
		}
		value := n.Value
		if n.Tag == "!!null" {
			value = ""
		}
		return y.add(prefix, value, n)
	}
	return nil
}

// add takes a setting. Which of two counts would be a guess, all the more where one is nested.
func (y *yamlFile) add(key, value string, n *yaml.Node) error {
	if line, said := y.lines[key]; said {
		return y.wrong(n, "%s is said in line %d already", key, line)
	}
	y.lines[key] = n.Line
	// A path in a file is meant from where the file is.
	if (key == "data" || key == "properties") && value != "" && !filepath.IsAbs(value) {
		value = filepath.Join(filepath.Dir(y.name), value)
	}
	y.settings = append(y.settings, Setting{Key: key, Value: value, From: fmt.Sprintf("in %s line %d", y.name, n.Line)})
	return nil
}

func (y *yamlFile) unreadable(err error) error {
	return fmt.Errorf("config: %s: %s", y.name, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
}

func (y *yamlFile) wrong(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("config: %s line %d: %s", y.name, n.Line, fmt.Sprintf(format, args...))
}
