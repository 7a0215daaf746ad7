// Package upstream is the broker behind the sidecar: connections to pass
// requests on, the versions it answers, and a view of its topics.
//
// The coordinator takes two decisions from that view, and each could destroy
// offsets if it were taken too easily:
//
//   - Whether a topic exists, for a commit. "It exists" may be up to one refresh
//     old (and, while the broker cannot be reached, up to MaxAge). "It does not
//     exist" is never remembered: it is what the broker said to a question that
//     was put after the commit had come. A burst of such questions costs the
//     broker no more than one request at a time, since those that wait go out
//     together.
//   - Whether a topic was deleted, which deletes its offsets everywhere. Silence
//     proves nothing: a broker that starts, an ACL that was taken away or an
//     answer cut short leave topics out too. So a topic counts as deleted when two
//     full and successful answers in a row (five, where they name no topic at all)
//     from the same cluster left it out, and the broker then says
//     UNKNOWN_TOPIC_OR_PARTITION to its very name. Or when the name has another id:
//     then the old topic is gone for certain. That may be long ago, if a broker that
//     lags showed it to a kcoord which had just started: what is known to be of the
//     new one stays. Until Deleted has heard of a deletion, no topic of that name is
//     shown to anybody (commits to it are asked to try again), so that the first
//     offsets of a new one come after.
//
// What is not seen: a topic deleted while kcoord was down. Its offsets stay, but have its id: from the
// first look on they are not given to who asks for the topic that has its name now.
//
// One goroutine, owned by the Broker, asks all questions, one at a time, over
// one connection of its own.
package upstream
