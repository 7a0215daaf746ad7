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
	if i := (interrupted{}); errors.As(err, &i) {
		return fmt.Errorf("demo: %w; nothing is left behind", i)
	}
	return err
}
