package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Ports say an address for each broker of a cluster.
type Ports struct {
	Nodes map[int32]Place // by node id
	Rest  *Place          // of all others: the port is this one's plus the node id
}

// Place is an address whose port is a number.
type Place struct {
	Host string
	Port int
}

func (p Place) String() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }

// Empty says whether there is no address for any broker.
func (p Ports) Empty() bool { return len(p.Nodes) == 0 && p.Rest == nil }

// ports is a list of ID=HOST:PORT, where one ID may be *.
func ports(name string, at func(*Config) *Ports, doc string) Key {
	return Key{
		Name: name, Allowed: "a list, with commas, of ID=HOST:PORT, of which one may be *=HOST:PORT; or empty", Doc: doc,
		parse: func(c *Config, s string) error {
			p, err := parsePorts(s)
			if err != nil {
				return err
			}
			*at(c) = p
			return nil
		},
	}
}

func parsePorts(s string) (Ports, error) {
	p := Ports{Nodes: map[int32]Place{}}
	if s == "" {
		return p, nil
	}
	places := map[Place]bool{}
	for entry := range strings.SplitSeq(s, ",") {
		id, address, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok {
			return p, errValue
		}
		place, err := parsePlace(address)
		if err != nil || place.Port != 0 && places[place] {
			return p, errValue
		}
		places[place] = true
		if id == "*" && p.Rest == nil {
			p.Rest = &place
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if _, twice := p.Nodes[int32(n)]; err != nil || n < 0 || twice {
			return p, errValue
		}
		p.Nodes[int32(n)] = place
	}
	return p, nil
}

func parsePlace(s string) (Place, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return Place{}, errValue
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return Place{}, errValue
	}
	return Place{host, n}, nil
}

// upstream are the brokers to begin with.
func upstream(doc string) Key {
	return Key{
		Name: "upstream", Allowed: "HOST:PORT, several with commas, or empty", Doc: doc,
		parse: func(c *Config, s string) error {
			c.Upstream, c.Upstreams = s, nil
			if s == "" {
				return nil
			}
			for one := range strings.SplitSeq(s, ",") {
				place, err := parsePlace(strings.TrimSpace(one))
				if err != nil {
					return err
				}
				c.Upstreams = append(c.Upstreams, place.String())
			}
			return nil
		},
	}
}

// gatewayAgrees checks the gateway's settings, and the broker's address, against the others.
func (c *Config) gatewayAgrees() error {
	if slices.Contains(c.Upstreams, c.Listen) {
		return fmt.Errorf("config: listen and upstream are both %s, so that kcoord would be its own broker: give it another port with listen", c.Listen)
	}
	if c.GatewayListen.Empty() {
		if !c.GatewayAdvertise.Empty() {
			return fmt.Errorf("config: gateway.advertise says where clients find what gateway.listen opens: set that, too")
		}
		if len(c.Upstreams) > 1 {
			return fmt.Errorf("config: upstream names several brokers, which is for a gateway (gateway.listen): a sidecar has one behind it")
		}
		return nil
	}
	for id, p := range c.GatewayListen.Nodes {
		if p.Port != 0 && p.String() == c.Listen {
			return fmt.Errorf("config: gateway.listen gives broker %d the address %s, which is that of listen: kcoord's own port needs another one", id, p)
		}
	}
	return nil
}
