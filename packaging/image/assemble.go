package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user owns the data folder and runs the process: no name, and no rights.
const user = 65532

// epoch is when everything in the image was made.
var epoch = time.Unix(0, 0).UTC()

// assemble makes an index of one image for each binary, which are files by architecture.
func assemble(binaries map[string]string, tag string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range slices.Sorted(maps.Keys(binaries)) {
		img, err := image(arch, binaries[arch])
		if err != nil {
			return nil, fmt.Errorf("the image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": tag},
		}})
	}
	return index, nil
}

func image(arch, binary string) (v1.Image, error) {
	files, err := rootfs(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "packaging/image", Created: v1.Time{Time: epoch}}}); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: epoch}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/kcoord"},
		Cmd:        []string{"serve"},
		Env: []string{
			"KCOORD_DATA=/var/lib/kcoord", "KCOORD_LISTEN=0.0.0.0:9092", "KCOORD_ADMIN=127.0.0.1:9094", "KCOORD_HTTP=0.0.0.0:9095",
		},
		ExposedPorts: map[string]struct{}{"9092/tcp": {}, "9095/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/kcoord": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "kcoord", "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/kcoord/kcoord",
		},
	}
	return mutate.ConfigFile(img, config)
}

// rootfs is the image's one layer: the binary, the data folder, and /tmp.
func rootfs(binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name string
		mode int64
		uid  int
		data []byte
	}{
		{"kcoord", 0o555, 0, content}, {"tmp/", 0o1777, 0, nil},
		{"var/", 0o755, 0, nil}, {"var/lib/", 0o755, 0, nil}, {"var/lib/kcoord/", 0o700, user, nil},
	} {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.uid, Gid: f.uid, Size: int64(len(f.data)), ModTime: epoch, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// write puts the layout's files into a tar, in order and without times.
func write(index v1.ImageIndex, out string) (err error) {
	dir, err := os.MkdirTemp("", "kcoord-layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error { // which goes in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(data)), ModTime: epoch, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}
