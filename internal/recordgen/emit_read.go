package main

import "strings"

var readers = map[string]string{
	"int8": "Int8", "int16": "Int16", "uint16": "Uint16", "int32": "Int32", "int64": "Int64",
	"uuid": "UUID", "bytes": "Bytes", "string": "String",
}

// versionParam is the parameter that only some methods need: keys have one layout, and a struct's may not vary.
func (d *decl) versionParam() string {
	if d.kind == "key" {
		return ""
	}
	return ", version int16"
}

func (d *decl) versionArg() string {
	if d.kind == "key" {
		return ""
	}
	return ", version"
}

func (e *emitter) read(d *decl) {
	e.p("func (v *%s) readFrom(r *recordbin.Reader%s) {", d.name, d.versionParam())
	e.p("*v = %s", d.initial())
	for _, f := range d.fields {
		if f.tag >= 0 {
			continue
		}
		if c := f.versionCond(); c != "" {
			e.p("if %s {", c)
			e.readField(d, f)
			e.p("}")
		} else {
			e.readField(d, f)
		}
	}
	if d.flexible >= 0 {
		e.readTags(d)
	}
	e.p("}\n")
}

func (e *emitter) readField(d *decl, f *field) {
	switch {
	case f.array:
		e.readArray(d, f)
	case f.elem != nil:
		marker := "r.Int8(%q) >= 0"
		if f.tag >= 0 {
			marker = "int32(r.Uvarint(%q)) > 0"
		}
		e.p("v.%s = nil", f.goName)
		e.p("if "+marker+" {", f.json)
		e.p("v.%s = new(%s)", f.goName, f.kind)
		e.p("v.%s.readFrom(r%s)", f.goName, d.versionArg())
		e.p("r.Within(%q)\n}", f.json)
	case f.nullable:
		e.p("v.%s = r.NullString(%q)", f.goName, f.json)
	default:
		e.p("v.%s = r.%s(%q)", f.goName, readers[f.kind], f.json)
	}
}

func (e *emitter) readArray(d *decl, f *field) {
	count := "n := r.ArrayLen(%q, %d); n > 0"
	if f.nullable {
		e.p("n, null := r.NullArrayLen(%q, %d)", f.json, f.elemLeast())
		e.p("v.%s, v.%s = nil, null", f.goName, f.nullFlag())
		e.p("if n > 0 {")
	} else {
		e.p("v.%s = nil", f.goName)
		e.p("if "+count+" {", f.json, f.elemLeast())
	}
	e.p("v.%s = make(%s, n)", f.goName, f.goType())
	e.p("for i := range v.%s {", f.goName)
	switch {
	case f.elem != nil:
		e.p("v.%s[i].readFrom(r%s)", f.goName, d.versionArg())
	default:
		e.p("v.%s[i] = r.%s(\"\")", f.goName, readers[f.kind])
	}
	e.p("if !r.OK() {\nr.In(%q, i)\nreturn\n}\n}\n}", f.json)
}

func (e *emitter) readTags(d *decl) {
	if d.flexible > 0 {
		e.p("if !r.Flexible() {\nreturn\n}")
	}
	e.p("var unknown []byte")
	e.p("for n := r.TagCount(); n > 0 && r.OK(); n-- {")
	e.p("tag, size := r.Tag()")
	if tags := d.tagged(); len(tags) > 0 {
		e.p("start := r.Offset()\nswitch tag {")
		for _, f := range tags {
			e.p("case %d:", f.tag)
			e.readField(d, f)
			e.p("r.EndTag(%q, start, size)", f.json)
		}
		e.p("default:\nunknown = r.UnknownTag(unknown, tag, size)\n}")
	} else {
		e.p("unknown = r.UnknownTag(unknown, tag, size)")
	}
	e.p("}\nv.UnknownTags = recordbin.UnknownTags(unknown)")
}

func (e *emitter) types(s *schema) {
	e.p("// Type is a record's type: the two bytes that its key starts with.\ntype Type int16\n")
	e.p("// The record types that are known here.\nconst (")
	each(s, "key", func(d *decl) { e.p("%s Type = %d", typeConst(d), d.typeID) })
	e.p(")\n\n// String is Kafka's name of the record without Key or Value, or the number.\nfunc (t Type) String() string {\nswitch t {")
	each(s, "key", func(d *decl) { e.p("case %s:\nreturn %q", typeConst(d), strings.TrimPrefix(typeConst(d), "Type")) })
	e.p("}\nreturn strconv.Itoa(int(t))\n}\n")
	e.p("// KeyName is the name of the key's message in Kafka's schemas, or \"\".\nfunc (t Type) KeyName() string {\nswitch t {")
	each(s, "key", func(d *decl) { e.p("case %s:\nreturn %q", typeConst(d), d.shown) })
	e.p("}\nreturn \"\"\n}\n")
	e.p("// ValueName is the name of the value's message in Kafka's schemas, or \"\".\nfunc (t Type) ValueName() string {\nswitch t {")
	each(s, "value", func(d *decl) { e.p("case %s:\nreturn %q", typeConst(d), d.shown) })
	e.p("}\nreturn \"\"\n}\n")
	e.p("// HighestVersion is the highest version of the type's values that is known here, or -1.\nfunc (t Type) HighestVersion() int16 {\nswitch t {")
	each(s, "value", func(d *decl) { e.p("case %s:\nreturn %d", typeConst(d), d.high) })
	e.p("}\nreturn -1\n}\n")
	e.p("func newKey(t Type) Key {\nswitch t {")
	each(s, "key", func(d *decl) { e.p("case %s:\nreturn new(%s)", typeConst(d), d.name) })
	e.p("}\nreturn nil\n}\n")
	e.p("// NewValue is an empty value of the type with Kafka's defaults, or nil for an unknown type.\nfunc NewValue(t Type) Value {\nswitch t {")
	each(s, "value", func(d *decl) { e.p("case %s:\nreturn New%s()", typeConst(d), d.name) })
	e.p("}\nreturn nil\n}\n")
}

func each(s *schema, kind string, do func(*decl)) {
	for id := range 1 << 10 {
		for _, f := range s.files {
			for _, d := range f.decls {
				if d.kind == kind && d.typeID == id {
					do(d)
				}
			}
		}
	}
}
