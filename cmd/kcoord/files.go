package main

import (
	"net"

	"golang.org/x/net/netutil"
)

// files is how the process shares its limit of open files. What a flood of clients takes must
// leave enough to the log, which cannot go on without.
type files struct {
	sockets int // of clients, and to the broker for them; 0: there is no limit
	tables  int // that the log keeps open; 0: as many as it likes
	admin   int // connections to the admin API; 0: as many as come
	http    int // those to the http port, likewise
}

// The log's share, with what else is open, is a quarter of the limit within these.
const (
	leastKept = 160
	mostKept  = 2000 // twice the tables that pebble keeps open
)

func shareFiles(limit int) files {
	if limit <= 0 {
		return files{}
	}
	kept := min(max(limit/4, leastKept), mostKept)
	return files{sockets: max(limit-kept, 1), tables: kept / 2, admin: kept / 4, http: kept / 8}
}

// bounded lets no more than some connections of a listener be open at a time; others wait to be
// accepted. 0: all are.
func bounded(l net.Listener, most int) net.Listener {
	if most <= 0 {
		return l
	}
	return netutil.LimitListener(l, most)
}
