package timerheap

// Queued is what a Queue orders. It keeps its place for the queue: from 1; 0: not in it.
type Queued[T any] interface {
	Before(T) bool
	Place() *int
}

// Queue is a heap whose items know their place, so that they can be moved and
// taken out. The first is Items[0]; Items is the queue's, but for what leaves the order as it is.
type Queue[T Queued[T]] struct{ Items []T }

// Put takes an item in, or gives it its new place.
func (q *Queue[T]) Put(x T) {
	if *x.Place() == 0 {
		q.Items = append(q.Items, x)
		*x.Place() = len(q.Items)
	}
	q.down(q.up(*x.Place() - 1))
}

// Remove takes an item out, if it is in.
func (q *Queue[T]) Remove(x T) {
	if *x.Place() == 0 {
		return
	}
	i, last := *x.Place()-1, len(q.Items)-1
	q.swap(i, last)
	clear(q.Items[last:])
	q.Items = q.Items[:last]
	*x.Place() = 0
	if i < last {
		q.down(q.up(i))
	}
}

func (q *Queue[T]) swap(i, j int) {
	q.Items[i], q.Items[j] = q.Items[j], q.Items[i]
	*q.Items[i].Place(), *q.Items[j].Place() = i+1, j+1
}

func (q *Queue[T]) up(i int) int {
	for i > 0 && q.Items[i].Before(q.Items[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	return i
}

func (q *Queue[T]) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q.Items); c++ {
			if q.Items[c].Before(q.Items[least]) {
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
