package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the release, which comes with the changes of CHANGELOG.md.
const version = "0.1.0-dev"

type versionCommand struct{}

// Run prints one line.
func (versionCommand) Run() error {
	_, err := fmt.Printf("kcoord %s%s %s %s/%s\n", version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit is what the binary was built from, if that is known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	rev := said["vcs.revision"]
	if rev == "" {
		return ""
	}
	if said["vcs.modified"] == "true" {
		return fmt.Sprintf(" (%.12s, modified)", rev)
	}
	return fmt.Sprintf(" (%.12s)", rev)
}
