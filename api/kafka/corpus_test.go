package kafka

import (
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/malformed anew")

// sized puts a length before bytes.
func sized(b ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

// headed is a request with a header of the given API and version and this body.
func headed(key, version int16, body ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = append(b, 0, 0, 0, 9, 0xff, 0xff)
	return sized(append(b, body...)...)
}

// TestCorpus keeps testdata/malformed to what this list says.
func TestCorpus(t *testing.T) {
	files := map[string][]byte{
		"length-zero":             {0, 0, 0, 0},
		"length-negative":         {0xff, 0xff, 0xff, 0xff},
		"length-2GB":              {0x7f, 0xff, 0xff, 0xff},
		"length-of-http":          []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"length-of-tls":           {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00},
		"header-short":            sized(0, 12, 0, 4),
		"header-client-id-longer": sized(0, 12, 0, 4, 0, 0, 0, 1, 0x7f, 0xff, 'x'),
		"header-client-id-below":  sized(0, 12, 0, 4, 0, 0, 0, 1, 0xff, 0xfe),
		"header-tags-cut":         headed(12, 4, 3, 1),
		"header-tags-endless":     headed(12, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"header-tag-longer":       headed(12, 4, 1, 0, 0xff, 0xff, 0x03),
		"api-unknown":             headed(999, 0),
		"api-negative":            headed(-5, 0),
		"api-of-brokers":          headed(4, 0),
		"api-not-served":          headed(68, 1),
		"version-above":           headed(11, 10),
		"version-negative":        headed(11, -1),
		"version-below":           headed(8, 1),
		"version-of-produce":      headed(0, 14),
	}
	for _, a := range served(2) {
		if !a.own() {
			continue
		}
		name := kmsg.NameForKey(a.key)
		for v := a.min; v <= a.max; v++ {
			var tags []byte
			if v >= a.flexible {
				tags = []byte{0}
			}
			if req := kmsg.RequestForKey(a.key); len(emptyBody(req, v)) > 0 { // ApiVersions has none at first
				files[name+"-cut"] = headed(a.key, v, append(tags, emptyBody(req, v)[:len(emptyBody(req, v))-1]...)...)
				files[name+"-junk"] = headed(a.key, v, append(tags, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f)...)
			}
		}
	}
	// Arrays that promise more than there is.
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version = 7
	b := commit.AppendTo(nil)
	binary.BigEndian.PutUint32(b[len(b)-4:], math.MaxInt32)
	files["OffsetCommit-array"] = headed(8, 7, b...)
	files["OffsetCommit-array-compact"] = headed(8, 9, 0, 2, 'g', 0, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x07)
	files["OffsetCommit-string-compact"] = headed(8, 9, 0, 0xff, 0xff, 0xff, 0xff, 0x07, 'g')
	files["OffsetCommit-null-group"] = headed(8, 9, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0)
	if *rewrite {
		for name, b := range files {
			if err := os.WriteFile(filepath.Join("testdata/malformed", name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := corpus(t)
	for name, b := range files {
		if string(kept[name]) != string(b) {
			t.Errorf("testdata/malformed/%s is not what TestCorpus makes: run it with -rewrite", name)
		}
	}
	for name := range kept {
		if files[name] == nil {
			t.Errorf("testdata/malformed/%s: nobody makes it", name)
		}
	}
}

func emptyBody(req kmsg.Request, version int16) []byte {
	req.SetVersion(version)
	return req.AppendTo(nil)
}
