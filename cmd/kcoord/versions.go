package main

import (
	"os"

	"github.com/kcoord/kcoord/metadataversion"
)

type versionsCommand struct{}

// Run prints every metadata.version and what it means for the records.
func (versionsCommand) Run() error { return metadataversion.WriteTable(os.Stdout) }
