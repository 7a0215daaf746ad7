package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/kcoord/kcoord/config"
)

// serverFlags are the flags of serve and dev. Each named one is the configuration key
// of its name.
type serverFlags struct {
	Listen     *string  `placeholder:"HOST:PORT" help:"Where Kafka clients connect (127.0.0.1:9092)."`
	Advertise  *string  `placeholder:"HOST:PORT" help:"The address that they are told (the one listened on)."`
	Admin      *string  `placeholder:"HOST:PORT" help:"Where the gRPC admin API listens (off)."`
	HTTP       *string  `name:"http" placeholder:"HOST:PORT" help:"Where metrics and health are served (off)."`
	Data       *string  `placeholder:"DIR" help:"The folder of the coordinator's log."`
	Properties string   `placeholder:"FILE" help:"Settings in Kafka's format; may be the broker's server.properties."`
	Config     string   `placeholder:"FILE" help:"Settings in YAML."`
	Set        []string `sep:"none" placeholder:"KEY=VALUE" help:"One setting; docs/configuration.md lists the keys. May be repeated."`
	LogLevel   *string  `placeholder:"LEVEL" help:"trace, debug, info, warn or error (info)."`
	LogFormat  *string  `placeholder:"FORMAT" help:"console, json or auto (auto)."`
}

// load reads all settings: these, the environment and the files.
func (f *serverFlags) load(more ...config.Setting) (config.Config, error) {
	from := config.Sources{Env: os.Environ(), YAML: f.Config, Properties: f.Properties}
	for _, s := range f.Set {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return config.Config{}, mistake{fmt.Errorf("--set %s: say it as KEY=VALUE", s)}
		}
		from.Flags = append(from.Flags, config.Setting{Key: strings.TrimSpace(key), Value: value, From: "as --set"})
	}
	for _, named := range []struct {
		key   string
		value *string
	}{
		{"listen", f.Listen}, {"advertise", f.Advertise}, {"admin", f.Admin}, {"http", f.HTTP}, {"data", f.Data},
		{"log.level", f.LogLevel}, {"log.format", f.LogFormat},
	} {
		from.Flags = append(from.Flags, flagSetting(named.key, named.value)...)
	}
	from.Flags = append(from.Flags, more...)
	c, err := config.Load(from)
	if err != nil {
		return c, mistake{err}
	}
	return c, nil
}

func flagSetting(key string, value *string) []config.Setting {
	if value == nil {
		return nil
	}
	return []config.Setting{{Key: key, Value: *value, From: "as --" + strings.ReplaceAll(key, ".", "-")}}
}
