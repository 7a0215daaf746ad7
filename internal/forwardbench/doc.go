// Command forwardbench measures what kcoord costs requests that it passes on: it
// produces to a broker and fetches from it, directly and through kcoord in turns,
// and prints the medians side by side with the CPU time that each process took.
//
//	forwardbench -direct BROKER -through KCOORD -broker-pid PID -kcoord-pid PID
//
// The raw rows are a client that does next to nothing: it sends one prepared request
// after the other, several at a time, and throws the answers away. So they show the
// path itself. The kgo rows are franz-go, which makes, checks and reads batches,
// as users' clients do. The topic that it uses has one partition and one replica,
// and its batches are not compressed.
package main
