//go:build !unix

package main

// fileLimit is how many files the process may have open; 0: there is no limit.
func fileLimit() int { return 0 }
