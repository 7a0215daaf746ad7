package kafka

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// TestStreamOverSockets: in whatever pieces a frame comes, it goes on as it came, and what follows
// it stays.
func TestStreamOverSockets(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		body := make([]byte, 300+rng.IntN(2*largeBuffer))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		client, in := sockets(t)
		out, broker := sockets(t)
		go func() {
			rest := append(bytes.Clone(body), "next"...)
			for len(rest) > 0 {
				n, err := client.Write(rest[:min(len(rest), 1+rng.IntN(2*usedBuffer))])
				if err != nil {
					t.Error(err)
					return
				}
				rest = rest[n:]
			}
		}()
		got := make(chan []byte)
		go func() {
			b, err := io.ReadAll(broker)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		f := &frames{src: in, act: new(atomic.Uint64)}
		if _, err := f.ahead(int(seed) * 4); err != nil {
			t.Fatal(err)
		}
		if err := f.stream(out, []byte("lead"), len(body)); err != nil {
			t.Fatal(err)
		}
		out.Close()
		if want := append([]byte("lead"), body...); !bytes.Equal(<-got, want) {
			t.Errorf("seed %d: other bytes went on than came", seed)
		}
		if next, err := f.ahead(4); err != nil || string(next) != "next" {
			t.Errorf("seed %d: behind the frame: %q, %v", seed, next, err)
		}
	}
}

// sockets are both ends of a connection.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}
