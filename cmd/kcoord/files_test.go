package main

import (
	"net"
	"testing"
)

func TestShareFiles(t *testing.T) {
	for limit, want := range map[int]files{
		0: {}, 64: {1, 80, 40, 20}, 300: {140, 80, 40, 20}, 1024: {768, 128, 64, 32}, 1 << 20: {1<<20 - 2000, 1000, 500, 250},
	} {
		if got := shareFiles(limit); got != want {
			t.Errorf("%d: %+v", limit, got)
		}
	}
}

// TestBounded: who comes beyond waits until somebody has gone.
func TestBounded(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := bounded(tcp, 1)
	defer l.Close()
	if bounded(tcp, 0) != tcp {
		t.Error("bounded without a bound")
	}
	for range 2 {
		nc, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		nc, _ := l.Accept()
		accepted <- nc
	}()
	select {
	case <-accepted:
		t.Fatal("a second one was accepted")
	default:
	}
	first.Close()
	if nc := <-accepted; nc == nil {
		t.Fatal("nobody was accepted after the first had gone")
	} else {
		nc.Close()
	}
}
