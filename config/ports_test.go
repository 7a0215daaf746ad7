package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	for said, want := range map[string]string{
		"":                                       "map[] <nil>",
		"1=a:1":                                  "map[1:a:1] <nil>",
		"1=a:1, 22=[::1]:2":                      "map[1:a:1 22:[::1]:2] <nil>",
		"*=:9100":                                "map[] :9100",
		"1=0.0.0.0:1,*=a:9100":                   "map[1:0.0.0.0:1] a:9100",
		"1=a:0,2=a:0":                            "map[1:a:0 2:a:0] <nil>",
		"a:1":                                    "wrong",
		"x=a:1":                                  "wrong",
		"-1=a:1":                                 "wrong",
		"1=a":                                    "wrong",
		"1=a:65536":                              "wrong",
		"1=a:1,1=a:2":                            "wrong",
		"*=a:1,*=a:2":                            "wrong",
		"1=a:1,2=a:1":                            "wrong",
		"1=a:1,":                                 "wrong",
		"1=a:http":                               "wrong",
		strings.Repeat("9", 30) + "=127.0.0.1:1": "wrong",
	} {
		p, err := parsePorts(said)
		got := fmt.Sprint(p.Nodes, " ", p.Rest)
		if err != nil {
			got = "wrong"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", said, got, want)
		}
		if err == nil && p.Empty() != (said == "") {
			t.Errorf("%q: empty is %t", said, p.Empty())
		}
	}
}

func TestGatewayMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"a sidecar with two brokers": {[]string{"upstream=a:1,b:2"},
			`config: upstream names several brokers, which is for a gateway (gateway.listen): a sidecar has one behind it`},
		"its own broker": {[]string{"upstream=127.0.0.1:9092"},
			`config: listen and upstream are both 127.0.0.1:9092, so that kcoord would be its own broker: give it another port with listen`},
		"addresses of nothing": {[]string{"gateway.advertise=1=a:1"},
			`config: gateway.advertise says where clients find what gateway.listen opens: set that, too`},
		"the same port twice": {[]string{"gateway.listen=1=127.0.0.1:9092"},
			`config: gateway.listen gives broker 1 the address 127.0.0.1:9092, which is that of listen: kcoord's own port needs another one`},
		"not a list": {[]string{"gateway.listen=9092"},
			`config: gateway.listen = "9092" : must be a list, with commas, of ID=HOST:PORT, of which one may be *=HOST:PORT; or empty`},
		"not an address": {[]string{"upstream=a"}, `config: upstream = "a" : must be HOST:PORT, several with commas, or empty`},
		"all well":       {[]string{"upstream=a:1, b:2", "gateway.listen=1=127.0.0.1:9101"}, `<nil>`},
	} {
		t.Run(name, func(t *testing.T) {
			var from Sources
			for _, f := range tc.flags {
				key, value, _ := strings.Cut(f, "=")
				from.Flags = append(from.Flags, Setting{Key: key, Value: value})
			}
			if _, err := Load(from); fmt.Sprint(err) != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
