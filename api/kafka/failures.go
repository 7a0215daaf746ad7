package kafka

import "slices"

// failure is a partition that is answered here; empty: a topic without any.
type failure struct {
	topic     string
	id        [16]byte
	partition int32
	code      int16
	empty     bool
}

// topicName tells the topics of an answer apart: by id in the versions that have ids, by topic in the others.
type topicName struct {
	topic string
	id    [16]byte
}

// merged puts what failed here before what the coordinator answered, and makes one topic of several
// entries, as Kafka does where partitions failed. topic and partition make an answer's from a
// failure's, and of says what a topic is called and where its partitions are.
func merged[T, P any](failed []failure, answered []T, topic func(*failure) T, partition func(*failure) P, of func(*T) (topicName, *[]P)) []T {
	topics, at := make([]T, 0, len(answered)+1), make(map[topicName]int, len(answered)+1)
	place := func(t T) (parts *[]P, has bool) {
		n := len(topics)
		topics = append(topics, t)
		called, parts := of(&topics[n])
		i, has := at[called]
		if !has {
			at[called] = n
			return parts, false
		}
		topics = topics[:n]
		_, parts = of(&topics[i])
		return parts, true
	}
	for i := 0; i < len(failed); {
		f := &failed[i]
		parts, _ := place(topic(f))
		n := f.alike(failed[i:])
		*parts = slices.Grow(*parts, n)
		for j := range failed[i : i+n] {
			if p := &failed[i+j]; !p.empty {
				*parts = append(*parts, partition(p))
			}
		}
		i += n
	}
	for i := range answered {
		if parts, has := place(answered[i]); has {
			_, more := of(&answered[i])
			*parts = append(*parts, *more...)
		}
	}
	return topics
}

// alike is how many of these, of which it is the first, are of the same topic.
func (f *failure) alike(these []failure) int {
	n := 1
	for n < len(these) && these[n].topic == f.topic && these[n].id == f.id {
		n++
	}
	return n
}
