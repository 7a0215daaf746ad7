package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kcoord/kcoord/storage/pebblelog"
)

type downgradeRestoreCommand struct {
	Checkpoint string `arg:"" placeholder:"CHECKPOINT" help:"The folder that the downgrade named."`
	Data       string `placeholder:"DIR" help:"The data folder; the one that the checkpoint is in, unless said."`
}

// Run puts the checkpoint in the place of the coordinator's log.
func (r *downgradeRestoreCommand) Run() error {
	checkpoint, err := filepath.Abs(r.Checkpoint)
	if err != nil {
		return mistake{err}
	}
	if _, err := os.Stat(checkpoint); err != nil {
		return mistake{fmt.Errorf("%s is no checkpoint: there is no such folder: `kcoord downgrade` named it, and `kcoord downgrade status` does", checkpoint)}
	}
	data := r.Data
	if data == "" { // DATA/downgrades/NAME/checkpoint
		data = filepath.Dir(filepath.Dir(filepath.Dir(checkpoint)))
	}
	if data, err = filepath.Abs(data); err != nil {
		return mistake{err}
	}
	if _, err := os.Stat(filepath.Join(data, shardsFile)); errors.Is(err, os.ErrNotExist) {
		return mistake{fmt.Errorf("%s is no data folder of kcoord: say with --data which one it is", data)}
	}
	if err := pebblelog.Restore(vfs.Default, checkpoint, filepath.Join(data, logFolder)); err != nil {
		return opening(err)
	}
	fmt.Printf("Restored, as it was when the checkpoint was taken; what was committed since is gone.\nStart kcoord on %s again.\n", data)
	return nil
}
