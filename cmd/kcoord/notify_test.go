package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// systemd listens as systemd does.
func systemd(ts *testscript.TestScript, _ bool, _ []string) {
	// A socket's path must be short, and a script's folder is not: an abstract one.
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@kcoord-" + ts.Name() + "-" + time.Now().Format("150405.000000000"), Net: "unixgram"})
	ts.Check(err)
	ts.Defer(func() { socket.Close() })
	ts.Setenv("NOTIFY_SOCKET", socket.LocalAddr().String())
	running.Store("systemd of "+ts.Name(), socket)
}

// told reads on to a message that has this text.
func told(ts *testscript.TestScript, _ bool, args []string) {
	v, _ := running.Load("systemd of " + ts.Name())
	socket := v.(*net.UnixConn)
	ts.Check(socket.SetReadDeadline(time.Now().Add(20 * time.Second)))
	buf := make([]byte, 4096)
	for {
		n, err := socket.Read(buf)
		ts.Check(err)
		if strings.Contains(string(buf[:n]), args[0]) {
			return
		}
	}
}

func TestNobodyIsNotified(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := newNotifier()
	n.ready()
	n.live(nil, func() bool { t.Error("asked for nobody"); return true })
	t.Setenv("NOTIFY_SOCKET", t.TempDir()+"/none")
	newNotifier().ready()
}

func TestTheWatchdogIsThatOfThisProcess(t *testing.T) {
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@kcoord-" + t.Name(), Net: "unixgram"})
	if err != nil {
		t.Skip("no abstract sockets here")
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", "@kcoord-"+t.Name())
	t.Setenv("WATCHDOG_USEC", "3000000")
	if n := newNotifier(); n.watchdog != 3*time.Second {
		t.Error(n.watchdog)
	}
	t.Setenv("WATCHDOG_PID", "1")
	if n := newNotifier(); n.watchdog != 0 {
		t.Error("that of another process")
	}
}

// TestNobodyHears: a socket that is not read holds nothing up.
func TestNobodyHears(t *testing.T) {
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@kcoord-" + t.Name(), Net: "unixgram"})
	if err != nil {
		t.Skip("no abstract sockets here")
	}
	defer deaf.Close()
	t.Setenv("NOTIFY_SOCKET", "@kcoord-"+t.Name())
	n := newNotifier()
	defer n.socket.Close()
	for {
		_ = n.socket.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := n.socket.Write([]byte("x")); err != nil {
			break // there is no room left
		}
	}
	_ = n.socket.SetWriteDeadline(time.Time{})
	n.watchdog = time.Millisecond
	ended := make(chan struct{})
	defer close(ended)
	go n.live(ended, func() bool { return true })
	told := make(chan struct{})
	go func() {
		n.ready()
		n.stopping()
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for systemd")
	}
}
