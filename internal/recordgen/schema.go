package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A schema file has one declaration a line, its fields indented below it:
//
//	file NAME                                 what follows goes to NAME_gen.go
//	key TYPE NAME [shown NAME]                a record key; "shown" is Kafka's name for it where that differs
//	value TYPE NAME VERSIONS [flexible N] [frozen]
//	struct NAME [flexible N]                  an element of arrays or a nullable part of others
//	  FIELD[:GO] KIND[?] [VERSIONS] [tag N] [ignorable] [= DEFAULT]
//
// KIND is int8, int16, uint16, int32, int64, string, bytes, uuid or a struct's name, with [] before it for an array and
// ? after it where null is allowed. VERSIONS is N, N-M or N+. From version "flexible" on lengths are compact and there
// are tagged fields. "frozen" means that no later version will come, so none is read as the highest known. A field that
// a version lacks is dropped on writing if it is ignorable or has its default, else writing fails, as in Kafka.
type schema struct{ files []*file }

type file struct {
	name  string
	decls []*decl
}

type decl struct {
	kind     string // key, value or struct
	typeID   int
	name     string
	shown    string
	high     int // highest version
	flexible int // first flexible version, or -1
	frozen   bool
	part     bool // held by pointer with a default that is not null, so that "is it the default?" is asked
	fields   []*field
}

type field struct {
	json      string
	goName    string
	kind      string
	array     bool
	nullable  bool
	low, high int // high is -1 while the field is still there
	tag       int // or -1
	ignorable bool
	def       string
	elem      *decl // for structs
}

func parse(text string) (*schema, error) {
	s := &schema{}
	structs := map[string]*decl{}
	var cur *decl
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var err error
		switch {
		case strings.HasPrefix(line, " "):
			if cur == nil {
				err = fmt.Errorf("a field outside a declaration")
				break
			}
			var f *field
			if f, err = parseField(words); err == nil {
				cur.fields = append(cur.fields, f)
			}
		case words[0] == "file" && len(words) == 2:
			s.files = append(s.files, &file{name: words[1]})
		case len(s.files) == 0:
			err = fmt.Errorf("%q before the first file", words[0])
		default:
			if cur, err = parseDecl(words); err == nil {
				last := s.files[len(s.files)-1]
				last.decls = append(last.decls, cur)
				structs[cur.name] = cur
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return s, s.resolve(structs)
}

func parseDecl(words []string) (*decl, error) {
	d := &decl{kind: words[0], flexible: -1}
	w := words[1:]
	var err error
	if d.kind == "key" || d.kind == "value" {
		if len(w) < 2 {
			return nil, fmt.Errorf("%s needs a type and a name", d.kind)
		}
		if d.typeID, err = strconv.Atoi(w[0]); err != nil {
			return nil, err
		}
		w = w[1:]
	} else if d.kind != "struct" || len(w) == 0 {
		return nil, fmt.Errorf("unknown declaration %q", words[0])
	}
	d.name, d.shown, w = w[0], w[0], w[1:]
	if d.kind == "value" {
		if len(w) == 0 {
			return nil, fmt.Errorf("value %s needs versions", d.name)
		}
		if _, d.high, err = parseVersions(w[0]); err != nil {
			return nil, err
		}
		w = w[1:]
	}
	for len(w) > 0 {
		switch {
		case w[0] == "frozen":
			d.frozen, w = true, w[1:]
		case w[0] == "shown" && len(w) > 1:
			d.shown, w = w[1], w[2:]
		case w[0] == "flexible" && len(w) > 1:
			if d.flexible, err = strconv.Atoi(w[1]); err != nil {
				return nil, err
			}
			w = w[2:]
		default:
			return nil, fmt.Errorf("unexpected %q", w[0])
		}
	}
	return d, nil
}

func parseField(words []string) (*field, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("a field needs a name and a kind")
	}
	f := &field{high: -1, tag: -1}
	var named bool
	if f.json, f.goName, named = strings.Cut(words[0], ":"); !named {
		f.goName = goName(f.json)
	}
	f.kind, f.nullable = strings.CutSuffix(words[1], "?")
	f.kind, f.array = strings.CutPrefix(f.kind, "[]")
	var err error
	for w := words[2:]; len(w) > 0 && err == nil; {
		switch {
		case w[0] == "ignorable":
			f.ignorable, w = true, w[1:]
		case w[0] == "tag" && len(w) > 1:
			f.tag, err = strconv.Atoi(w[1])
			w = w[2:]
		case w[0] == "=" && len(w) > 1:
			f.def, w = w[1], w[2:]
		default:
			f.low, f.high, err = parseVersions(w[0])
			w = w[1:]
		}
	}
	return f, err
}

func parseVersions(s string) (low, high int, err error) {
	from, to, isRange := strings.Cut(s, "-")
	from, open := strings.CutSuffix(from, "+")
	if low, err = strconv.Atoi(from); err != nil {
		return 0, 0, fmt.Errorf("versions %q: %w", s, err)
	}
	switch {
	case open:
		return low, -1, nil
	case isRange:
		high, err = strconv.Atoi(to)
		return low, high, err
	}
	return low, low, nil
}

// goName is Kafka's name as Go writes it.
func goName(json string) string {
	name := strings.ToUpper(json[:1]) + json[1:]
	if head, ok := strings.CutSuffix(name, "Id"); ok {
		return head + "ID"
	}
	return name
}

var scalarSize = map[string]int{"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}

// resolve ties fields to their structs and refuses what the emitter does not do.
func (s *schema) resolve(structs map[string]*decl) error {
	for _, fl := range s.files {
		for _, d := range fl.decls {
			if len(d.fields) == 0 || d.fields[0].tag >= 0 || d.fields[0].low > 0 || d.fields[0].high >= 0 {
				return fmt.Errorf("%s: the first field must be in every version: JSON's commas count on it", d.name)
			}
			for _, f := range d.fields {
				if err := f.resolve(d, structs); err != nil {
					return fmt.Errorf("%s.%s: %w", d.name, f.json, err)
				}
			}
		}
	}
	return nil
}

func (f *field) resolve(d *decl, structs map[string]*decl) error {
	scalar := scalarSize[f.kind] > 0 || f.kind == "string" || f.kind == "bytes"
	if !scalar {
		f.elem = structs[f.kind]
		if f.elem == nil || f.elem.kind != "struct" {
			return fmt.Errorf("unknown kind %q", f.kind)
		}
		if f.elem.flexible != d.flexible {
			return fmt.Errorf("%s is flexible from %d, its owner from %d", f.kind, f.elem.flexible, d.flexible)
		}
	}
	if f.elem != nil && !f.array && f.def != "null" {
		f.elem.part = true
	}
	switch {
	case f.elem != nil && !f.array && !f.nullable:
		return fmt.Errorf("structs by value are not supported")
	case f.nullable && !f.array && f.elem == nil && f.kind != "string":
		return fmt.Errorf("a nullable %s is not supported", f.kind)
	case f.array && f.kind == "bytes":
		return fmt.Errorf("arrays of bytes are not supported")
	case f.tag >= 0 && (d.flexible < 0 || f.low < d.flexible):
		return fmt.Errorf("tagged in a version that is not flexible")
	}
	return nil
}

// leastSize is the fewest bytes a struct takes in any version.
func (d *decl) leastSize() int {
	least := -1
	for version := range 16 {
		n := 0
		flexible := d.flexible >= 0 && version >= d.flexible
		if flexible {
			n++ // the number of tagged fields
		}
		for _, f := range d.fields {
			if f.tag < 0 && version >= f.low && (f.high < 0 || version <= f.high) {
				n += f.leastSize(flexible)
			}
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return max(least, 1)
}

func (f *field) leastSize(flexible bool) int {
	switch {
	case f.elem != nil && !f.array: // the null marker
		return 1
	case !f.array && scalarSize[f.kind] > 0:
		return scalarSize[f.kind]
	case flexible:
		return 1
	case f.kind == "string" && !f.array:
		return 2
	}
	return 4
}

// elemLeast is the fewest bytes an array's element takes.
func (f *field) elemLeast() int {
	switch {
	case f.elem != nil:
		return f.elem.leastSize()
	case scalarSize[f.kind] > 0:
		return scalarSize[f.kind]
	}
	return 1
}
