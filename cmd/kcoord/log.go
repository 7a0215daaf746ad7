package main

import (
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"github.com/kcoord/kcoord/config"
)

// newLog writes to stderr, for people where stderr is a terminal and for programs
// where it is not, unless one of them was asked for.
func newLog(c config.Config) zerolog.Logger {
	zerolog.SetGlobalLevel(levelOf(c))
	zerolog.TimeFieldFormat = time.RFC3339Nano
	console := c.LogFormat == "console" || c.LogFormat == "auto" && isatty.IsTerminal(os.Stderr.Fd())
	if !console {
		return zerolog.New(os.Stderr).With().Timestamp().Logger()
	}
	w := zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000", NoColor: !isatty.IsTerminal(os.Stderr.Fd())}
	return zerolog.New(w).With().Timestamp().Logger()
}

func levelOf(c config.Config) zerolog.Level {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		panic("config lets through a log level that zerolog does not know: " + c.LogLevel)
	}
	return level
}
