package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// files reads a tar: names to headers and contents.
func files(t *testing.T, r io.Reader) map[string]tarFile {
	t.Helper()
	all := map[string]tarFile{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = tarFile{*h, data}
	}
}

type tarFile struct {
	tar.Header
	data []byte
}

// load unpacks an image file and reads it as an engine would.
func load(t *testing.T, file string) v1.ImageIndex {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, f := range files(t, bytes.NewReader(raw)) {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	return index
}

func TestImage(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "kcoord")
	if err := os.WriteFile(binary, []byte("ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := [2]string{filepath.Join(t.TempDir(), "a.tar"), filepath.Join(t.TempDir(), "b.tar")}
	var raw [2][]byte
	for i := range out {
		index, err := assemble(map[string]string{"amd64": binary, "arm64": binary}, "kcoord:test")
		if err != nil {
			t.Fatal(err)
		}
		if err := write(index, out[i]); err != nil {
			t.Fatal(err)
		}
		if raw[i], err = os.ReadFile(out[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(raw[0], raw[1]) {
		t.Error("the same binary gives another image")
	}
	m, err := load(t, out[0]).IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range m.Manifests {
		platforms = append(platforms, d.Platform.String()+" "+d.Annotations["org.opencontainers.image.ref.name"])
	}
	if got := fmt.Sprint(platforms); got != "[linux/amd64 kcoord:test linux/arm64 kcoord:test]" {
		t.Error(got)
	}
	img, err := load(t, out[0]).Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	checkImage(t, img)
}

func checkImage(t *testing.T, img v1.Image) {
	t.Helper()
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Config.User != "65532:65532" || fmt.Sprint(c.Config.Entrypoint) != "[/kcoord]" || !c.Created.Equal(epoch) || c.OS != "linux" {
		t.Errorf("%+v", c)
	}
	if _, data := c.Config.Volumes["/var/lib/kcoord"]; !data {
		t.Error("the data folder is no volume")
	}
	fs := rootOf(t, img)
	if len(fs) != 5 || fs["kcoord"].Mode != 0o555 || fs["var/lib/kcoord/"].Uid != user || fs["var/lib/kcoord/"].Mode != 0o700 {
		t.Errorf("%d files: %+v", len(fs), fs["var/lib/kcoord/"].Header)
	}
}

func rootOf(t *testing.T, img v1.Image) map[string]tarFile {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	return files(t, content)
}

// TestTheBinaryRuns builds the image as users do, and runs what is in it.
func TestTheBinaryRuns(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("short, or not Linux: it builds kcoord")
	}
	out := filepath.Join(t.TempDir(), "kcoord.tar")
	if err := run(out, "kcoord:test", []string{runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	index := load(t, out)
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	checkImage(t, img)
	exe := filepath.Join(t.TempDir(), "kcoord")
	if err := os.WriteFile(exe, rootOf(t, img)["kcoord"].data, 0o700); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(exe, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), "kcoord ") {
		t.Errorf("%s: %v", said, err)
	}
}
