package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key is one line of the table.
type Key struct {
	Name    string
	Default string
	Allowed string // in words, for errors and the documentation
	Doc     string
	Kafka   bool // Kafka has a key of this name, with this default
	Later   bool // checked, and not acted on yet
	Reloads bool // can change while kcoord runs

	parse func(*Config, string) error
}

// apply checks a value and puts it where it belongs.
func (k *Key) apply(c *Config, value string) error {
	if err := k.parse(c, strings.TrimSpace(value)); err != nil {
		return fmt.Errorf("must be %s", k.Allowed)
	}
	return nil
}

// errValue says that a value is not what its key allows; the key says what that is.
var errValue = errors.New("config: not allowed")

const maxInt32 = math.MaxInt32

func number(s string) (int64, error) { return strconv.ParseInt(strings.TrimSpace(s), 10, 64) }

func allowed(lo, hi int64, unit string) string {
	what := "a whole number"
	if unit != "" {
		what += " of " + unit
	}
	if hi == math.MaxInt64 {
		return fmt.Sprintf("%s, %d or more", what, lo)
	}
	return fmt.Sprintf("%s from %d to %d", what, lo, hi)
}

func ranged(lo, hi int64, put func(*Config, int64)) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := number(s)
		if err != nil || n < lo || n > hi {
			return errValue
		}
		if put != nil {
			put(c, n)
		}
		return nil
	}
}

// whole is a number. Where at is nil, here and below, the key is one for later.
func whole(name string, def, lo, hi int64, at func(*Config) *int, doc string) Key {
	var put func(*Config, int64)
	if at != nil {
		put = func(c *Config, n int64) { *at(c) = int(n) }
	}
	return Key{
		Name: name, Default: strconv.FormatInt(def, 10), Allowed: allowed(lo, hi, ""), Doc: doc,
		Later: at == nil, parse: ranged(lo, hi, put),
	}
}

// units are those of durations, by how their keys' names end.
var units = map[string]struct {
	one  time.Duration
	name string
}{
	"ms":      {time.Millisecond, "milliseconds"},
	"minutes": {time.Minute, "minutes"},
}

// span is a duration, in the unit that its name ends with.
func span(name string, def, lo, hi int64, at func(*Config) *time.Duration, doc string) Key {
	unit := units[name[strings.LastIndexByte(name, '.')+1:]]
	allow := allowed(lo, hi, unit.name)
	hi = min(hi, math.MaxInt64/int64(unit.one))
	var put func(*Config, int64)
	if at != nil {
		put = func(c *Config, n int64) { *at(c) = time.Duration(n) * unit.one }
	}
	return Key{
		Name: name, Default: strconv.FormatInt(def, 10), Allowed: allow, Doc: doc,
		Later: at == nil, parse: ranged(lo, hi, put),
	}
}

// boolean is true or false, in any case, as Kafka takes it.
func boolean(name string, def bool, at func(*Config) *bool, doc string) Key {
	return Key{
		Name: name, Default: strconv.FormatBool(def), Allowed: "true or false", Doc: doc, Later: at == nil,
		parse: func(c *Config, s string) error {
			s = strings.ToLower(s)
			if s != "true" && s != "false" {
				return errValue
			}
			if at != nil {
				*at(c) = s == "true"
			}
			return nil
		},
	}
}

// choice is one of several words, the first of which is the default.
func choice(name string, at func(*Config) *string, doc string, words ...string) Key {
	return Key{
		Name: name, Default: words[0], Allowed: "one of " + strings.Join(words, ", "), Doc: doc, Later: at == nil,
		parse: func(c *Config, s string) error {
			s = strings.ToLower(s)
			if !slices.Contains(words, s) {
				return errValue
			}
			if at != nil {
				*at(c) = s
			}
			return nil
		},
	}
}

// words is a list of some of several words.
func words(name, def, doc string, of ...string) Key {
	return Key{
		Name: name, Default: def, Allowed: "a list, with commas, of " + strings.Join(of, ", "), Doc: doc, Later: true,
		parse: func(_ *Config, s string) error {
			for w := range strings.SplitSeq(s, ",") {
				if !slices.Contains(of, strings.ToLower(strings.TrimSpace(w))) {
					return errValue
				}
			}
			return nil
		},
	}
}

// address is HOST:PORT, or nothing where the default is that.
func address(name, def string, at func(*Config) *string, doc string) Key {
	what := "HOST:PORT"
	if def == "" {
		what += " or empty"
	}
	return Key{
		Name: name, Default: def, Allowed: what, Doc: doc,
		parse: func(c *Config, s string) error {
			if s == "" && def == "" {
				*at(c) = ""
				return nil
			}
			_, port, err := net.SplitHostPort(s)
			if err != nil {
				return errValue
			}
			if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
				return errValue
			}
			*at(c) = s
			return nil
		},
	}
}

// path names a file or folder.
func path(name string, at func(*Config) *string, doc string) Key {
	return Key{Name: name, Allowed: "a path", Doc: doc, parse: func(c *Config, s string) error {
		*at(c) = s
		return nil
	}}
}
