package config

import "fmt"

// Change is a key whose value is another one than before.
type Change struct {
	Key       string
	From, To  string // values
	Said      string // where the new one is said; "": nowhere any more
	Effective bool   // whether it can change while kcoord runs
}

// String is the change in words, for the log.
func (c Change) String() string {
	where := c.Said
	if where == "" {
		where = "by default"
	}
	s := fmt.Sprintf("%s = %q %s, was %q", c.Key, c.To, where, c.From)
	if !c.Effective {
		s += ": it changes when kcoord is started anew"
	}
	return s
}

// Reload is what runs from now on, when c ran and next is what is said now: what can
// change has, and the rest is as it was.
func (c Config) Reload(next Config) (Config, []Change) {
	merged := map[string]Setting{}
	var changes []Change
	for i := range table {
		k := &table[i]
		was, is := c.setting(k.Name), next.setting(k.Name)
		if was.Value != is.Value {
			changes = append(changes, Change{k.Name, was.Value, is.Value, is.From, k.Reloads})
		}
		if !k.Reloads {
			is = was
		}
		if is.From != "" {
			merged[k.Name] = is
		}
	}
	running, err := typed(merged)
	if err != nil {
		panic(fmt.Sprintf("config: what was allowed is not: %v", err))
	}
	running.Ignored, running.NotActedOn = next.Ignored, next.NotActedOn
	return running, changes
}

// setting is the one that counts for a key.
func (c Config) setting(key string) Setting { return effective(c.said, key) }

// Explanation tells of one key.
type Explanation struct {
	Name, Default, Allowed, Doc string
	Value                       string
	From                        string // where it is said; "": nowhere
	Reloads                     bool   // whether it can change while kcoord runs
	Later                       bool   // checked, and not acted on yet
	Kafka                       bool   // Kafka has a key of this name
}

// Explain tells of a key, or of an error with what may be meant.
func (c Config) Explain(key string) (Explanation, error) {
	k, ok := byName[key]
	if !ok {
		return Explanation{}, unknown(Setting{Key: key, From: "as an argument"})
	}
	s := c.setting(key)
	return Explanation{k.Name, k.Default, k.Allowed, k.Doc, s.Value, s.From, k.Reloads, k.Later, k.Kafka}, nil
}

// Keys are the names of all keys, in the order of the documentation.
func Keys() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}
