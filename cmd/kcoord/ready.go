package main

import (
	"errors"
	"fmt"

	"github.com/kcoord/kcoord/api/kafka/upstream"
)

// ready says what clients would have to wait for, nil: nothing. A load balancer
// asks it, so it says nothing is ready from when the drain has begun.
func (s *server) ready() error {
	if !s.listening.Load() {
		return errors.New("the listener is not up")
	}
	select {
	case <-s.upstream.Ready():
	default:
		return errors.New("the broker has not answered yet")
	}
	switch err := s.upstream.Down(); {
	case errors.Is(err, upstream.ErrOtherCluster):
		return errors.New("the broker belongs to another cluster than before: restart kcoord if that is right")
	case err != nil:
		return errors.New("the broker does not answer")
	}
	if opened, all := s.node.Opened(); opened < all {
		return fmt.Errorf("%d of %d shards have been opened", opened, all)
	}
	return nil
}

// alive is the watchdog's question: whether the coordinator still does anything. It looks
// at every shard, so a shard that hangs with its lock held has no answer.
func (s *server) alive() bool {
	opened, _ := s.node.Opened()
	return opened >= 0
}
