package group

// queued is what a queue orders. It keeps its place for the queue: from 1; 0: not in it.
type queued[T any] interface {
	before(T) bool
	at() *int
}

// queue is a heap whose items know their place, so that they can be moved and
// taken out.
type queue[T queued[T]] struct{ items []T }

// put takes an item in, or gives it its new place.
func (q *queue[T]) put(x T) {
	if *x.at() == 0 {
		q.items = append(q.items, x)
		*x.at() = len(q.items)
	}
	q.down(q.up(*x.at() - 1))
}

// remove takes an item out, if it is in.
func (q *queue[T]) remove(x T) {
	if *x.at() == 0 {
		return
	}
	i, last := *x.at()-1, len(q.items)-1
	q.swap(i, last)
	clear(q.items[last:])
	q.items = q.items[:last]
	*x.at() = 0
	if i < last {
		q.down(q.up(i))
	}
}

func (q *queue[T]) swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	*q.items[i].at(), *q.items[j].at() = i+1, j+1
}

func (q *queue[T]) up(i int) int {
	for i > 0 && q.items[i].before(q.items[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (q *queue[T]) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q.items); c++ {
			if q.items[c].before(q.items[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}
