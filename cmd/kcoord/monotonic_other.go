//go:build !linux

package main

// monotonic is systemd's, which is not here.
func monotonic() int64 { return 0 }
