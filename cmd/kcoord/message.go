package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/kcoord/kcoord/storage"
)

// oneLine is an error's text without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// listen opens a port, or says what is in the way of it.
func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, mistake{fmt.Errorf("%s is in use by another process: stop that, or choose another port with %s", address, flag)}
	case errors.Is(err, syscall.EACCES):
		return nil, mistake{fmt.Errorf("%s may not be opened by this user: choose a port above 1023 with %s", address, flag)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, mistake{fmt.Errorf("%s is not an address of this machine: choose one with %s", address, flag)}
	}
	return nil, mistake{fmt.Errorf("cannot listen on %s, as %s says: %w", address, flag, err)}
}

// opening says what to do when the data folder cannot be opened. The errors of
// storage say it themselves.
func opening(err error) error {
	for _, known := range []error{storage.ErrLocked, storage.ErrFormat, os.ErrPermission} {
		if errors.Is(err, known) {
			return mistake{err}
		}
	}
	return err
}
