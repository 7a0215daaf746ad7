package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kcoord/kcoord/internal/demo"
)

type demoCommand struct{}

// Run plays the demo with this executable.
func (demoCommand) Run(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("which executable this is: %w", err)
	}
	err = demo.Run(ctx, self, os.Stdout)
	if errors.As(err, &interrupted{}) {
		return errors.New("demo: interrupted; nothing is left behind")
	}
	return err
}
