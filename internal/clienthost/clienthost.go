// Package clienthost writes the hosts of clients as Kafka shows them, in answers and in records.
package clienthost

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Of is the host of an address as Java writes it: "/127.0.0.1", IPv6 without anything left
// out, and a link-local one with the number of its interface.
func Of(addr net.Addr) string {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return "/" + strings.TrimPrefix(addr.String(), "/")
	}
	ip := at.Addr().Unmap()
	if ip.Is4() {
		return "/" + ip.String()
	}
	b := ip.As16()
	words := make([]string, len(b)/2)
	for i := range words {
		words[i] = fmt.Sprintf("%x", uint16(b[2*i])<<8|uint16(b[2*i+1]))
	}
	return "/" + strings.Join(words, ":") + scope(ip.Zone())
}

// scope is what an address says of its interface.
func scope(zone string) string {
	if zone == "" {
		return ""
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		zone = strconv.Itoa(i.Index)
	}
	return "%" + zone
}
