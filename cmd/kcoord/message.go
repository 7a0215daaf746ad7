package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/kcoord/kcoord/internal/table"
	"github.com/kcoord/kcoord/storage"
)

// oneLine is an error's text without line breaks, and without what a terminal would obey.
func oneLine(err error) string { return table.Plain(strings.Join(strings.Fields(err.Error()), " ")) }

// several is one error of some, each of which says enough by itself; what some of them say alike
// is said once. nil: there is none.
func several(errs []error) error {
	var texts []string
	for _, err := range errs {
		if err != nil && !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	if texts == nil {
		return nil
	}
	return severalErrors{errors.Join(errs...), strings.Join(texts, "; ")}
}

type severalErrors struct {
	error
	text string
}

func (s severalErrors) Error() string { return s.text }
func (s severalErrors) Unwrap() error { return s.error }

// isHostPort says whether an address names both.
func isHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	return err == nil && host != "" && port != ""
}

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

// folderError says what to do about a file of the data folder. The errors of storage say it
// themselves.
func folderError(err error) error {
	what := "check the disk"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "free some space there"
	case errors.Is(err, syscall.EROFS), errors.Is(err, os.ErrPermission):
		what = "kcoord may not write there: check the mount and the owner"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, os.ErrNotExist):
		what = "choose another folder with --data"
	}
	return mistake{fmt.Errorf("the data folder: %w: %s", err, what)}
}

// opening says who can mend it when the log cannot be opened.
func opening(err error) error {
	for _, known := range []error{storage.ErrLocked, storage.ErrFormat, os.ErrPermission} {
		if errors.Is(err, known) {
			return mistake{err}
		}
	}
	return err
}
