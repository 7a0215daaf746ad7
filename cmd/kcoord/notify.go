package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// notifier tells systemd how the process stands (sd_notify(3)), where systemd is there
// and wants to know. Each message is one datagram, and one that is lost is nobody's loss.
type notifier struct {
	socket   *net.UnixConn
	telling  sync.Mutex    // one at a time and in turn: signs of life keep nobody from telling
	watchdog time.Duration // within which a sign of life is expected; 0: not
}

// newNotifier looks at what systemd has put into the environment.
func newNotifier() *notifier {
	n := &notifier{}
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return n
	}
	if path[0] == '@' { // an abstract one
		path = "\x00" + path[1:]
	}
	if socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}); err == nil {
		n.socket = socket
	}
	pid, err := strconv.Atoi(os.Getenv("WATCHDOG_PID"))
	if us, usErr := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); usErr == nil && (err != nil || pid == os.Getpid()) {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// heard is how long systemd is waited for: signals are not taken meanwhile.
const heard = time.Second

func (n *notifier) tell(state string) {
	if n.socket != nil {
		n.telling.Lock()
		defer n.telling.Unlock()
		_ = n.socket.SetWriteDeadline(time.Now().Add(heard))
		_, _ = n.socket.Write([]byte(state)) // systemd is gone, or hears nothing: nobody to tell
	}
}

func (n *notifier) ready()    { n.tell("READY=1\nSTATUS=Serving") }
func (n *notifier) stopping() { n.tell("STOPPING=1\nSTATUS=Finishing what is under way") }

// reloading also says when, which Type=notify-reload asks for.
func (n *notifier) reloading() {
	n.tell(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()))
}

// live gives signs of life as long as alive says so, until stop is closed.
func (n *notifier) live(stop <-chan struct{}, alive func() bool) {
	if n.socket == nil || n.watchdog <= 0 {
		return
	}
	tick := time.NewTicker(n.watchdog / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if alive() {
				n.tell("WATCHDOG=1")
			}
		case <-stop:
			return
		}
	}
}
