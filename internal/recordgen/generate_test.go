package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedIsCurrent: what is committed is what the schemas give.
func TestGeneratedIsCurrent(t *testing.T) {
	for pkg, owner := range map[string]string{"groupmeta": "GroupID", "txnlog": ""} {
		dir := filepath.Join("..", "..", pkg)
		files, err := generate(filepath.Join(dir, "records.schema"), pkg, owner)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if got, _ := os.ReadFile(filepath.Join(dir, name)); !bytes.Equal(got, want) {
				t.Errorf("%s/%s is stale: run go generate ./%s", pkg, name, pkg)
			}
		}
		committed, _ := filepath.Glob(filepath.Join(dir, "*_gen.go"))
		if len(committed) != len(files) {
			t.Errorf("%s has %d generated files, the schema gives %d", pkg, len(committed), len(files))
		}
	}
}

// TestKeysBeginWithTheirOwner: groupmeta.GroupOfKey reads the first field of any key and calls it the group.
func TestKeysBeginWithTheirOwner(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "groupmeta", "records.schema"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	each(s, "key", func(d *decl) {
		if f := d.fields[0]; f.goName != "Group" || f.kind != "string" || f.nullable {
			t.Errorf("%s begins with %s %s", d.name, f.json, f.kind)
		}
	})
}

func TestSchemaErrors(t *testing.T) {
	for text, want := range map[string]string{
		"key 1 K":                                                 `line 1: "key" before the first file`,
		"file f\nkey x K":                                         "line 2: strconv.Atoi",
		"file f\nvalue 1 V 0-x":                                   "line 2: strconv.Atoi",
		"file f\nvalue 1 V 0 soft":                                `line 2: unexpected "soft"`,
		"file f\n  a int8":                                        "line 2: a field outside a declaration",
		"file f\nkey 1 K\n  a":                                    "line 3: a field needs a name and a kind",
		"file f\nkey 1 K\n  a int8 b":                             `line 3: versions "b"`,
		"file f\nkey 1 K\n  a int7":                               `K.a: unknown kind "int7"`,
		"file f\nkey 1 K\n  a int8 1+":                            "K: the first field must be in every version",
		"file f\nkey 1 K\n  a int8\n  b int8 tag 0":               "K.b: tagged in a version that is not flexible",
		"file f\nkey 1 K\n  a int8?":                              "K.a: a nullable int8 is not supported",
		"file f\nstruct S flexible 0\n  a int8\nkey 1 K\n  a []S": "K.a: S is flexible from 0, its owner from -1",
	} {
		_, err := parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
