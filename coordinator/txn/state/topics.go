package state

import (
	"slices"
	"strings"
)

// Topic is some partitions of a topic, in order.
type Topic struct {
	Name       string
	Partitions []int32
}

// Topics are partitions by topic, sorted by name and partition, each once. They
// are never changed in place.
type Topics []Topic

// TopicsOf sorts partitions. A topic without any is none.
func TopicsOf(ts ...Topic) Topics {
	if sorted(ts) {
		return ts
	}
	var out Topics
	for _, t := range ts {
		if len(t.Partitions) == 0 {
			continue
		}
		i, has := out.find(t.Name)
		if !has {
			out = slices.Insert(out, i, Topic{Name: t.Name})
		}
		out[i].Partitions = append(out[i].Partitions, t.Partitions...)
	}
	for i := range out {
		slices.Sort(out[i].Partitions)
		out[i].Partitions = slices.Compact(out[i].Partitions)
	}
	return out
}

func sorted(ts []Topic) bool {
	for i, t := range ts {
		if len(t.Partitions) == 0 || i > 0 && ts[i-1].Name >= t.Name {
			return false
		}
		for j := range t.Partitions {
			if j > 0 && t.Partitions[j-1] >= t.Partitions[j] {
				return false
			}
		}
	}
	return true
}

func (ts Topics) find(name string) (int, bool) {
	return slices.BinarySearchFunc(ts, name, func(t Topic, name string) int { return strings.Compare(t.Name, name) })
}

// Has says whether a partition is among them.
func (ts Topics) Has(topic string, partition int32) bool {
	i, has := ts.find(topic)
	if !has {
		return false
	}
	_, has = slices.BinarySearch(ts[i].Partitions, partition)
	return has
}

// Contain says whether all of others are among them.
func (ts Topics) Contain(others Topics) bool {
	for _, o := range others {
		for _, p := range o.Partitions {
			if !ts.Has(o.Name, p) {
				return false
			}
		}
	}
	return true
}

// With are these and others.
func (ts Topics) With(others Topics) Topics {
	if len(ts) == 0 {
		return others
	}
	out := make(Topics, 0, len(ts)+len(others))
	return TopicsOf(append(append(out, ts...), others...)...)
}

// Without are these but not others.
func (ts Topics) Without(others Topics) Topics {
	var out Topics
	for _, t := range ts {
		var left []int32
		for _, p := range t.Partitions {
			if !others.Has(t.Name, p) {
				left = append(left, p)
			}
		}
		if len(left) > 0 {
			out = append(out, Topic{t.Name, left})
		}
	}
	return out
}

// Len is the number of partitions.
func (ts Topics) Len() (n int) {
	for _, t := range ts {
		n += len(t.Partitions)
	}
	return n
}
