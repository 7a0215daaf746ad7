// Command image builds the container image of kcoord without a container engine:
//
//	go run ./packaging/image -o kcoord.tar
//	podman load -i kcoord.tar      # or docker, skopeo, crane
//
// The file is a tar of an OCI image layout, for amd64 and arm64. There is nothing in the
// image but the binary and an empty data folder, and it runs as nobody in particular.
// The same source and toolchain give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	out := flag.String("o", "kcoord.tar", "the file to write")
	archs := flag.String("arch", "amd64,arm64", "architectures, with commas")
	tag := flag.String("tag", "kcoord:latest", "the name that the image is loaded under")
	flag.Parse()
	if err := run(*out, *tag, strings.Split(*archs, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(out, tag string, archs []string) (err error) {
	dir, err := os.MkdirTemp("", "kcoord-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binaries := map[string]string{}
	for _, arch := range archs {
		binaries[arch] = filepath.Join(dir, "kcoord-"+arch)
		if err := build(arch, binaries[arch]); err != nil {
			return err
		}
	}
	index, err := assemble(binaries, tag)
	if err != nil {
		return err
	}
	if err := write(index, out); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s  %s\n", out, digest)
	return nil
}

// build compiles what does not depend on where and when it is built.
func build(arch, to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", to, "github.com/kcoord/kcoord/cmd/kcoord")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s: %w: %s", arch, err, said)
	}
	return nil
}
