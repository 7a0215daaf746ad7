package main

import (
	"fmt"
	"strings"
)

var goKinds = map[string]string{"bytes": "[]byte", "uuid": "recordbin.UUID"}

func (f *field) goType() string {
	t := f.kind
	if g, ok := goKinds[t]; ok {
		t = g
	}
	switch {
	case f.array:
		return "[]" + t
	case f.elem != nil:
		return "*" + t
	case f.nullable:
		return "recordbin.NullString"
	}
	return t
}

// nullFlag is the field that tells null from empty. An array's Go zero value must be Kafka's default, which is empty.
func (f *field) nullFlag() string { return f.goName + "Null" }

func (f *field) nullArray() bool { return f.array && f.nullable }

// versionCond is the condition under which a version has the field, or "" where all have it.
func (f *field) versionCond() string {
	switch {
	case f.high == f.low:
		return fmt.Sprintf("version == %d", f.low)
	case f.high >= 0 && f.low > 0:
		return fmt.Sprintf("version >= %d && version <= %d", f.low, f.high)
	case f.high >= 0:
		return fmt.Sprintf("version <= %d", f.high)
	case f.low > 0:
		return fmt.Sprintf("version >= %d", f.low)
	}
	return ""
}

// versionsDoc says the same in Kafka's notation, for comments.
func (f *field) versionsDoc() string {
	switch {
	case f.high == f.low:
		return fmt.Sprintf("v%d", f.low)
	case f.high >= 0:
		return fmt.Sprintf("v%d-%d", f.low, f.high)
	case f.low > 0:
		return fmt.Sprintf("v%d+", f.low)
	}
	return ""
}

// setCond is the condition under which the field of x does not have its default.
func (f *field) setCond(x string) string {
	v := x + "." + f.goName
	switch {
	case f.nullArray():
		return fmt.Sprintf("len(%s) > 0 || %s.%s", v, x, f.nullFlag())
	case f.array || f.kind == "bytes":
		return fmt.Sprintf("len(%s) > 0", v)
	case f.elem != nil && f.def == "null":
		return v + " != nil"
	case f.elem != nil:
		return fmt.Sprintf("%s == nil || !%s.isDefault()", v, v)
	case f.kind == "string" && f.nullable && f.def == "null":
		return v + ".Valid"
	case f.kind == "string" && f.nullable:
		return v + " != recordbin.Some(\"\")"
	case f.kind == "string":
		return v + ` != ""`
	case f.kind == "uuid":
		return v + " != (recordbin.UUID{})"
	}
	return v + " != " + f.goDefault()
}

func (f *field) goDefault() string {
	if f.def == "" {
		return "0"
	}
	return f.def
}

// initial is the field's part of a composite literal with the defaults, or "" where Go's zero value is it.
func (f *field) initial() string {
	switch {
	case f.array || f.def == "null" || f.kind == "bytes" || f.kind == "uuid":
		return ""
	case f.elem != nil:
		return fmt.Sprintf("%s: &%s{}", f.goName, f.kind)
	case f.kind == "string" && f.nullable:
		return f.goName + `: recordbin.Some("")`
	case f.def == "":
		return ""
	}
	return f.goName + ": " + f.def
}

func (d *decl) initial() string {
	var parts []string
	for _, f := range d.fields {
		if s := f.initial(); s != "" {
			parts = append(parts, s)
		}
	}
	return d.name + "{" + strings.Join(parts, ", ") + "}"
}

func (d *decl) tagged() []*field {
	var tags []*field
	for tag := range 64 {
		for _, f := range d.fields {
			if f.tag == tag {
				tags = append(tags, f)
			}
		}
	}
	return tags
}

func (e *emitter) decl(d *decl) {
	e.structType(d)
	switch d.kind {
	case "key":
		e.keyMethods(d)
	case "value":
		e.valueMethods(d)
	case "struct":
		if d.part {
			e.isDefault(d)
		}
	}
	e.read(d)
	e.write(d)
	e.json(d)
}

func (e *emitter) structType(d *decl) {
	switch d.kind {
	case "key":
		e.p("// %s is the key of record type %d.", d.name, d.typeID)
	case "value":
		e.p("// %s is the value under record type %d, versions 0 to %d.", d.name, d.typeID, d.high)
	default:
		e.p("// %s is a part of other records.", d.name)
	}
	e.p("type %s struct {", d.name)
	for _, f := range d.fields {
		var notes []string
		if v := f.versionsDoc(); v != "" {
			notes = append(notes, v)
		}
		if f.tag >= 0 {
			notes = append(notes, fmt.Sprintf("tag %d", f.tag))
		}
		if f.elem != nil && !f.array {
			notes = append(notes, "nil is null")
		}
		if f.def != "" && f.def != "null" {
			notes = append(notes, "default "+f.def)
		}
		comment := ""
		if len(notes) > 0 {
			comment = " // " + strings.Join(notes, ", ")
		}
		e.p("%s %s%s", f.goName, f.goType(), comment)
		if f.nullArray() {
			e.p("%s bool // %s is null and not just empty", f.nullFlag(), f.goName)
		}
	}
	if d.flexible >= 0 {
		e.p("UnknownTags recordbin.UnknownTags // kept and written back")
	}
	e.p("}\n")
}

func (e *emitter) keyMethods(d *decl) {
	e.p("// Type is the record type, %d.\nfunc (*%s) Type() Type { return %s }\n", d.typeID, d.name, typeConst(d))
	if e.owner != "" {
		e.p("// %s is whose record it is.\nfunc (v *%s) %s() string { return v.%s }\n", e.owner, d.name, e.owner, d.fields[0].goName)
	}
	e.p("// AppendTo appends the key's bytes. The only error is a string over 32767 bytes.")
	e.p("func (v *%s) AppendTo(dst []byte) ([]byte, error) {", d.name)
	e.p("w := recordbin.NewWriter(dst, %d, false)\nv.writeTo(&w)\nreturn w.Result(%q, %q, %d)\n}\n", d.typeID, e.pkg, d.name, d.typeID)
	e.p("// Decode reads the whole key, prefix included. Errors are *recordbin.DecodeError.")
	e.p("func (v *%s) Decode(b []byte) error {", d.name)
	e.p("r, err := recordbin.NewKeyReader(%q, %q, b, %d)\nif err != nil {\nreturn err\n}", e.pkg, d.name, d.typeID)
	e.p("v.readFrom(&r)\nreturn r.Err(%q, %q, %d)\n}\n", e.pkg, d.name, d.typeID)
}

func (e *emitter) valueMethods(d *decl) {
	e.p("// Type is the type of the record, which its key says.\nfunc (*%s) Type() Type { return %s }\n", d.name, typeConst(d))
	e.p("// New%s has Kafka's defaults.\nfunc New%s() *%s { return &%s }\n", d.name, d.name, d.name, d.initial())
	if d.frozen {
		e.p("// AppendTo appends the value's bytes. Only versions up to %d can be written.", d.high)
	} else {
		e.p("// AppendTo appends the value's bytes. A version above %d is written in the layout of %d under its own number:", d.high, d.high)
		e.p("// that is how a record from a later Kafka goes back as it came.")
	}
	e.p("func (v *%s) AppendTo(dst []byte, version int16) ([]byte, error) {", d.name)
	e.p("layout, err := recordbin.Layout(%q, %q, version, %d, %t)\nif err != nil {\nreturn dst, err\n}", e.pkg, d.name, d.high, d.frozen)
	e.p("w := recordbin.NewWriter(dst, version, %s)\nv.writeTo(&w, layout)\nreturn w.Result(%q, %q, version)\n}\n", flexibleExpr(d), e.pkg, d.name)
	e.p("// Decode reads the whole value, prefix included, and returns its version. Errors are *recordbin.DecodeError.")
	e.p("func (v *%s) Decode(b []byte) (int16, error) {", d.name)
	e.p("version, layout, err := recordbin.ValuePrefix(%q, %q, b, %d, %t)\nif err != nil {\nreturn version, err\n}", e.pkg, d.name, d.high, d.frozen)
	e.p("r := recordbin.NewReader(b, %s, layout != version)", flexibleExpr(d))
	e.p("v.readFrom(&r, layout)\nreturn version, r.Err(%q, %q, version)\n}\n", e.pkg, d.name)
}

func flexibleExpr(d *decl) string {
	switch d.flexible {
	case -1:
		return "false"
	case 0:
		return "true"
	}
	return fmt.Sprintf("layout >= %d", d.flexible)
}

func (e *emitter) isDefault(d *decl) {
	var conds []string
	for _, f := range d.fields {
		conds = append(conds, "!("+f.setCond("v")+")")
	}
	conds = append(conds, `v.UnknownTags == ""`)
	e.p("func (v *%s) isDefault() bool {\nreturn %s\n}\n", d.name, strings.Join(conds, " && "))
}

func typeConst(d *decl) string {
	return "Type" + strings.TrimSuffix(strings.TrimSuffix(d.name, "Key"), "Value")
}
