package clienthost

import (
	"net"
	"strconv"
	"testing"
)

// What Java 17 writes of the other end of accepted connections.
func TestOf(t *testing.T) {
	for _, tc := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 1}, "/127.0.0.1"},
		{&net.TCPAddr{IP: net.ParseIP("::ffff:10.1.2.3"), Port: 1}, "/10.1.2.3"},
		{&net.TCPAddr{IP: net.ParseIP("::1"), Port: 1}, "/0:0:0:0:0:0:0:1"},
		{&net.TCPAddr{IP: net.ParseIP("fd00::2"), Port: 1}, "/fd00:0:0:0:0:0:0:2"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8:0:0:1::"), Port: 1}, "/2001:db8:0:0:1:0:0:0"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::fc:ff:fe00:1"), Port: 1, Zone: "4"}, "/fe80:0:0:0:fc:ff:fe00:1%4"},
		{&net.UnixAddr{Name: "/tmp/x"}, "/tmp/x"},
		{&net.UnixAddr{Name: "@"}, "/@"},
	} {
		if got := Of(tc.addr); got != tc.want {
			t.Errorf("%v: %q, not %q", tc.addr, got, tc.want)
		}
	}
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		return
	}
	addr := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 1, Zone: all[0].Name}
	if want := "/fe80:0:0:0:0:0:0:1%" + strconv.Itoa(all[0].Index); Of(addr) != want {
		t.Errorf("%v: %q, not %q", addr, Of(addr), want)
	}
}
