package shard

import "github.com/kcoord/kcoord/storage"

// queue holds letters in the order of their gates, which never go back.
type queue[Resp, Eff any] struct {
	ls   []letter[Resp, Eff]
	head int
}

func (q *queue[Resp, Eff]) len() int { return len(q.ls) - q.head }

func (q *queue[Resp, Eff]) push(l letter[Resp, Eff]) { q.ls = append(q.ls, l) }

// popTo takes the letters whose gate is at or below end. The caller owns them.
func (q *queue[Resp, Eff]) popTo(end storage.Offset) []letter[Resp, Eff] {
	n := q.head
	for n < len(q.ls) && q.ls[n].gate <= end {
		n++
	}
	if n == len(q.ls) { // as a rule: the whole of it
		out := q.ls[q.head:]
		q.ls, q.head = nil, 0
		return out
	}
	out := append([]letter[Resp, Eff](nil), q.ls[q.head:n]...)
	clear(q.ls[q.head:n])
	q.head = n
	if q.head > len(q.ls)/2 {
		q.ls = append(q.ls[:0], q.ls[q.head:]...)
		q.head = 0
	}
	return out
}
