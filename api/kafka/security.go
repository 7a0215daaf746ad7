package kafka

import "net"

// secure is where TLS and SASL go in: it runs in the connection's own goroutine,
// before the first request is read, and returns what requests are read from. So
// far there is PLAINTEXT alone.
func secure(nc net.Conn) (net.Conn, error) { return nc, nil }
