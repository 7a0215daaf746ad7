package main

import "fmt"

func (e *emitter) write(d *decl) {
	e.p("func (v *%s) writeTo(w *recordbin.Writer%s) {", d.name, d.versionParam())
	for _, f := range d.fields {
		if f.tag >= 0 {
			continue
		}
		c := f.versionCond()
		if c == "" {
			e.writeField(d, f)
			continue
		}
		e.p("if %s {", c)
		e.writeField(d, f)
		if !f.ignorable {
			e.p("} else if %s {\nw.NotInVersion(%q)", f.setCond("v"), f.json)
		}
		e.p("}")
	}
	if d.flexible >= 0 {
		e.writeTags(d)
	}
	e.p("}\n")
}

func (e *emitter) writeField(d *decl, f *field) {
	switch {
	case f.array:
		if f.nullable {
			e.p("w.NullArrayLen(%q, len(v.%s), v.%s)", f.json, f.goName, f.nullFlag())
			e.p("if !v.%s {", f.nullFlag())
		} else {
			e.p("w.ArrayLen(%q, len(v.%s))", f.json, f.goName)
		}
		e.p("for i := range v.%s {", f.goName)
		if f.elem != nil {
			e.p("v.%s[i].writeTo(w%s)\n}", f.goName, d.versionArg())
		} else {
			e.writeScalar(f, fmt.Sprintf("v.%s[i]", f.goName))
			e.p("}")
		}
		if f.nullable {
			e.p("}")
		}
	case f.elem != nil:
		null, present := "w.Int8(-1)", "w.Int8(1)"
		if f.tag >= 0 {
			null, present = "w.Uvarint(0)", "w.Uvarint(1)"
		}
		e.p("if v.%s == nil {\n%s\n} else {\n%s\nv.%s.writeTo(w%s)\n}", f.goName, null, present, f.goName, d.versionArg())
	default:
		e.writeScalar(f, "v."+f.goName)
	}
}

func (e *emitter) writeScalar(f *field, expr string) {
	switch {
	case f.kind == "string" && f.nullable && !f.array:
		e.p("w.NullString(%q, %s)", f.json, expr)
	case f.kind == "string" || f.kind == "bytes":
		e.p("w.%s(%q, %s)", readers[f.kind], f.json, expr)
	default:
		e.p("w.%s(%s)", readers[f.kind], expr)
	}
}

func (e *emitter) writeTags(d *decl) {
	tags := d.tagged()
	if d.flexible > 0 {
		e.p("if !w.Flexible() {")
		for _, f := range tags {
			if !f.ignorable {
				e.p("if %s {\nw.NotInVersion(%q)\n}", f.setCond("v"), f.json)
			}
		}
		e.p("if v.UnknownTags != \"\" {\nw.NotInVersion(\"unknown tagged fields\")\n}\nreturn\n}")
	}
	if len(tags) == 0 {
		e.p("w.Uvarint(uint32(v.UnknownTags.Len()))\nw.UnknownRest(v.UnknownTags)")
		return
	}
	e.p("n := v.UnknownTags.Len()")
	for _, f := range tags {
		e.p("if %s {\nn++\n}", f.setCond("v"))
	}
	e.p("w.Uvarint(uint32(n))\nunknown := v.UnknownTags")
	for _, f := range tags {
		e.p("if %s {\nunknown = w.UnknownBelow(unknown, %d)\nmark := w.BeginTag(%d)", f.setCond("v"), f.tag, f.tag)
		e.writeField(d, f)
		e.p("w.EndTag(mark)\n}")
	}
	e.p("w.UnknownRest(unknown)")
}

// json emits Kafka's JsonConverter: fields in the schema's order, those that the version lacks left out, tagged ones
// left out at their default too.
func (e *emitter) json(d *decl) {
	name := "appendJSON"
	if d.kind != "struct" {
		name = "AppendJSON"
		e.p("// AppendJSON appends what Kafka's JsonConverter makes of it, on one line.")
	}
	param := d.versionParam()
	e.p("func (v *%s) %s(dst []byte%s) []byte {", d.name, name, param)
	if d.kind == "value" {
		e.p("version = recordbin.Nearest(version, %d)", d.high)
	}
	sep := "{"
	for _, f := range d.fields {
		cond := f.versionCond()
		if f.tag >= 0 {
			if cond != "" {
				cond += " && "
			}
			cond += "(" + f.setCond("v") + ")"
		}
		if cond != "" {
			e.p("if %s {", cond)
		}
		e.p("dst = append(dst, `%s%q:`...)", sep, f.json)
		e.jsonField(d, f)
		if cond != "" {
			e.p("}")
		}
		sep = ","
	}
	e.p("return append(dst, '}')\n}\n")
}

func (e *emitter) jsonField(d *decl, f *field) {
	v := "v." + f.goName
	switch {
	case f.array:
		if f.nullable {
			e.p("if v.%s {\ndst = append(dst, \"null\"...)\n} else {", f.nullFlag())
		}
		e.p("dst = append(dst, '[')\nfor i := range %s {\nif i > 0 {\ndst = append(dst, ',')\n}", v)
		e.jsonScalar(d, f, v+"[i]")
		e.p("}\ndst = append(dst, ']')")
		if f.nullable {
			e.p("}")
		}
	case f.elem != nil:
		e.p("if %s == nil {\ndst = append(dst, \"null\"...)\n} else {", v)
		e.jsonScalar(d, f, v)
		e.p("}")
	default:
		e.jsonScalar(d, f, v)
	}
}

func (e *emitter) jsonScalar(d *decl, f *field, expr string) {
	switch {
	case f.elem != nil:
		e.p("dst = %s.appendJSON(dst%s)", expr, d.versionArg())
	case f.kind == "string" && f.nullable && !f.array:
		e.p("dst = recordbin.AppendJSONNullString(dst, %s)", expr)
	case f.kind == "string", f.kind == "bytes", f.kind == "uuid":
		e.p("dst = recordbin.AppendJSON%s(dst, %s)", readers[f.kind], expr)
	default:
		e.p("dst = recordbin.AppendJSONInt(dst, %s)", expr)
	}
}
