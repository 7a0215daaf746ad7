// Package clienttest holds kcoord to what real clients need of it: franz-go,
// sarama and segmentio/kafka-go, over sockets, against `kcoord dev` as a child
// process that can be killed with -9. It is all tests.
//
// What a client was answered is a promise, and a ledger keeps it: an offset whose
// commit was acknowledged, or that a fetch has told of, must be there ever after,
// whoever asks and however often kcoord died meanwhile. So the checks don't depend
// on when something happens, and nothing here sleeps: tests wait for what is to
// come true, with a deadline that only a failure reaches.
//
// Two tests look at the same from both ends. Linear (linear_test.go) knows nothing
// of groups' purposes: it takes down every commit and fetch of raw connections and
// asks porcupine whether any order of them explains the answers, where a commit
// that was cut off may have happened or not. KillLoop (killloop_test.go) knows
// nothing of requests: consumers must see every record, whatever happens to kcoord.
package clienttest
