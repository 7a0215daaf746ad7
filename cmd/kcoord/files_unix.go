//go:build unix

package main

import "golang.org/x/sys/unix"

// fileLimit is how many files the process may have open; 0: there is no limit.
func fileLimit() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<30 {
		return 0
	}
	return int(l.Cur)
}
