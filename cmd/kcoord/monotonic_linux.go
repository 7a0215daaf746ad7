package main

import "golang.org/x/sys/unix"

// monotonic is the kernel's clock that systemd reckons with, in microseconds.
func monotonic() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return now.Nano() / 1000
}
