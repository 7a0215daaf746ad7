package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// hold is how long a connection is kept that is of no use.
const hold = 10 * time.Second

// habits are the known ways to misbehave.
var habits = []habit{
	// Connections.
	{"sends nothing", 100, 0, bytesAndWait(nil)},
	{"half a length", 20, 0, bytesAndWait([]byte{0, 0})},
	{"half a frame", 20, 0, bytesAndWait(append(binary.BigEndian.AppendUint32(nil, 1000), 0, 12, 0, 4, 0, 0))},
	{"a frame byte by byte", 20, 0, trickle},
	{"connects and drops", 2, 10 * time.Millisecond, drop},
	{"connects and closes", 1, 20 * time.Millisecond, closes},
	{"storm of reconnects", 1, 5 * time.Second, storm},
	{"closes its half and waits", 2, 50 * time.Millisecond, halfClose},
	{"idle after versions", 20, 0, versionsAndWait},

	// Bytes.
	{"length of 2 GB", 1, 20 * time.Millisecond, bytesAndRead([]byte{0x7f, 0xff, 0xff, 0xff})},
	{"length of 99 MB and no more", 10, 0, bytesAndWait(append(binary.BigEndian.AppendUint32(nil, 99<<20), 0, 8, 0, 9, 0, 0, 0, 1, 0, 0, 0))},
	{"negative length", 1, 20 * time.Millisecond, bytesAndRead([]byte{0xff, 0xff, 0xff, 0xff})},
	{"length zero", 1, 20 * time.Millisecond, bytesAndRead([]byte{0, 0, 0, 0})},
	{"garbage", 1, 20 * time.Millisecond, garbage},
	{"garbage behind a header", 1, 20 * time.Millisecond, garbageBody},
	{"arrays of 2 billion", 1, 20 * time.Millisecond, hugeArrays},
	{"TLS hello", 1, 50 * time.Millisecond, bytesAndRead(append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}, make([]byte, 500)...))},
	{"HTTP request", 1, 50 * time.Millisecond, bytesAndRead([]byte("GET / HTTP/1.1\r\nHost: kcoord\r\nUser-Agent: curl/8\r\n\r\n"))},
	{"SSH banner", 1, 50 * time.Millisecond, bytesAndRead([]byte("SSH-2.0-OpenSSH_9.6\r\n"))},
	{"unknown APIs", 1, 20 * time.Millisecond, header(9999, 0)},
	{"versions of long ago", 1, 20 * time.Millisecond, header(8, 0)},
	{"versions of the future", 1, 20 * time.Millisecond, header(11, 99)},
	{"APIs of brokers among themselves", 1, 20 * time.Millisecond, header(52, 0)},

	// Answers.
	{"never reads its answer", 10, time.Second, neverRead},
	{"pipelines without reading", 10, time.Second, pipeline},
	{"reads a byte at a time", 10, time.Second, sip},
	{"fetches everything", 2, 20 * time.Millisecond, fetchAll},
	{"lists and describes everything", 1, time.Second, describeAll},
	{"asks for the whole metadata", 1, 50 * time.Millisecond, metadataAll},

	// What is passed on.
	{"fetches records and never reads", 5, time.Second, recordsUnread},
	{"waits for records and vanishes", 5, 20 * time.Millisecond, waitAndVanish},
	{"half a produce", 10, 0, halfProduce},
	{"produces garbage", 1, 50 * time.Millisecond, produceGarbage},

	// Groups.
	{"joins and never syncs", 10, 100 * time.Millisecond, joinNoSync},
	{"joins and vanishes", 2, 50 * time.Millisecond, joinAndVanish},
	{"asks for a member id and never joins", 1, 20 * time.Millisecond, askForID},
	{"two with one instance id", 4, 50 * time.Millisecond, sameInstance},
	{"leaves who is not there", 1, 20 * time.Millisecond, leaveUnknown},
	{"beats for members of others", 1, 20 * time.Millisecond, beatUnknown},
	{"syncs where it is no member", 1, 20 * time.Millisecond, syncUnknown},

	// Offsets.
	{"commits with a stale generation", 2, 10 * time.Millisecond, commitStale},
	{"commits into groups of others", 1, 20 * time.Millisecond, commitIntoGood},
	{"huge metadata", 2, 100 * time.Millisecond, hugeMetadata},
	{"commits for topics that are not there", 1, 100 * time.Millisecond, commitUnknownTopics},
	{"ten thousand partitions at once", 1, 200 * time.Millisecond, commitMany},
	{"groups that come and go", 2, 20 * time.Millisecond, comeAndGo},
	{"asks for groups that are not there", 1, 20 * time.Millisecond, askUnknownGroups},

	// Transactions.
	{"transactions that never end", 10, 200 * time.Millisecond, txnNeverEnds},
	{"fences its own producer", 2, 50 * time.Millisecond, fenceItself},
	{"ends what never began", 1, 20 * time.Millisecond, endUnknown},
}

// wait keeps a connection for a while, reading nothing.
func wait(ctx context.Context, w *wire) {
	defer w.Close()
	pause(ctx, hold)
}

// drain reads to the end, which kcoord is to bring about.
func drain(w *wire) error {
	defer w.Close()
	_ = w.SetDeadline(time.Now().Add(hold)) // fails where it is closed already
	_, err := io.Copy(io.Discard, w.in)
	return err
}

// bytesAndWait sends some bytes and then nothing.
func bytesAndWait(b []byte) func(context.Context, *bad, int) error {
	return func(ctx context.Context, x *bad, _ int) error {
		w, err := x.dial(ctx)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		wait(ctx, w)
		return err
	}
}

// bytesAndRead sends some bytes, for which the connection is to be closed.
func bytesAndRead(b []byte) func(context.Context, *bad, int) error {
	return func(ctx context.Context, x *bad, _ int) error {
		w, err := x.dial(ctx)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			w.Close()
			return err
		}
		return drain(w)
	}
}

// framed puts the length before a request.
func framed(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

// header is a request of an API and version that has a header alone.
func header(key, version uint16) func(context.Context, *bad, int) error {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, key), version)
	return bytesAndRead(framed(append(b, 0, 0, 0, 1, 0, 0)))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // which never fails
	return b
}

func garbage(ctx context.Context, b *bad, _ int) error { return bytesAndRead(random(4096))(ctx, b, 0) }

// garbageBody has a header that is right, of each of our APIs in turn.
func garbageBody(ctx context.Context, b *bad, _ int) error {
	r := random(300)
	key := []uint16{8, 9, 10, 11, 12, 13, 14, 15, 16, 22, 24, 25, 26, 28, 42, 47}[r[0]%16]
	head := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, key), 2)
	return bytesAndRead(framed(append(append(head, 0, 0, 0, 1, 0, 1, 'x'), r...)))(ctx, b, 0)
}

// hugeArrays says that two billion topics follow.
func hugeArrays(ctx context.Context, b *bad, _ int) error {
	body := []byte{0, 8, 0, 5, 0, 0, 0, 1, 0, 1, 'x', 0, 1, 'g', 0, 0, 0, 0, 0, 1, 'm', 0x7f, 0xff, 0xff, 0xff}
	return bytesAndRead(framed(append(body, make([]byte, 100)...)))(ctx, b, 0)
}

func trickle(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, c := range formatter.AppendRequest(nil, fetchRequest("good-0", topicName, 0, 10), 1) {
		if _, err := w.Write([]byte{c}); err != nil {
			return err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// drop closes at once with a reset.
func drop(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	_ = w.Conn.(*net.TCPConn).SetLinger(0) // else it is closed politely
	w.Close()
	return nil
}

func closes(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err == nil {
		w.Close()
	}
	return err
}

// storm is what happens when a network is back: everybody at once.
func storm(ctx context.Context, b *bad, _ int) error {
	const clients = 200
	errs := make(chan error, clients)
	for range clients {
		go func() {
			w, err := b.dial(ctx)
			if err == nil {
				_, err = do(w, kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrApiVersionsResponse())
				_ = w.Conn.(*net.TCPConn).SetLinger(0) // no port waits
				w.Close()
			}
			errs <- err
		}()
	}
	var first error
	for range clients {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}

// halfClose asks, says that nothing more comes, and waits for the answer.
func halfClose(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	if err := w.send(fetchRequest("good-0", "", 0, 0)); err != nil {
		w.Close()
		return err
	}
	_ = w.Conn.(*net.TCPConn).CloseWrite() // kcoord may have closed it
	return drain(w)
}

func versionsAndWait(ctx context.Context, b *bad, _ int) error {
	w, err := b.dial(ctx)
	if err != nil {
		return err
	}
	_, err = do(w, kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrApiVersionsResponse())
	wait(ctx, w)
	return err
}
