// Command soak holds a kcoord under load that it has to bear for ever: clients that
// behave, at a fixed rate, and beside them, in every third phase, some that misbehave in
// each known way.
//
//	soak -kcoord BINARY [-duration 10m] [-connections 10000] [-groups 1000] [-offsets 100000]
//
// Four processes: kcoord (`serve`); a second one, the decoy; the misbehaving clients together with the
// broker behind, so that what they do to their own process touches nobody's measurement; and this one, with
// those that behave. In the phase before, the same clients misbehave at the decoy: by what p99 grows then,
// the machine is to blame, whose cores all share, and by the rest kcoord.
//
// The good ones are an open loop: a request leaves when it is due, whatever has been answered. Their
// latency counts from the write. Each group has its members, each member a connection, heartbeats and
// commits of its own partitions, and a generation that must not change: a rebalance of a good group, an
// error code or a closed connection is a failure.
//
// After each phase with the others it is waited until kcoord is as it was: connections, goroutines and
// files. At the end memory is compared with that of the first rounds.
//
// The misbehaving are in habits*.go, one function a habit. Their rates are bounded and their process has
// the lowest priority, since clients and server share the machine: a loop without a pause
// would measure the scheduler.
package main
