// Package demo does kcoord's main job before a newcomer's eyes: it runs a
// consumer group through kcoord, kills kcoord in the middle of its commits,
// starts it again, and shows that nothing acknowledged was lost.
//
// What it prints it has measured. To be able to tell that an offset survived,
// rather than was committed again, the members stop committing when the process
// is killed and go on only after the offsets have been looked at: each must be
// the last acknowledged one or one that was sent after it.
//
// A second part (exactly.go) does the same with transactions: two workers copy
// exactly once, one dies in the middle of a transaction, and its ghost is refused.
//
// It ends with a downgrade (downgrade.go): refused with its reasons, forced, and taken
// back.
//
// kcoord runs as a child process (kill -9 cannot be shown from inside), on a port
// of the loopback interface and in a temporary folder. Both are gone when Run
// returns, however it returns.
package demo
