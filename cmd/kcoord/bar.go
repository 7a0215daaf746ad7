package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// bar is a progress bar in the last line of a terminal. Elsewhere it shows nothing.
type bar struct {
	out   io.Writer // nil: no terminal
	drawn bool
}

func newBar(f *os.File) *bar {
	b := &bar{}
	if isatty.IsTerminal(f.Fd()) {
		b.out = f
	}
	return b
}

// show draws it anew.
func (b *bar) show(done, of int, format string, args ...any) {
	if b.out == nil || of == 0 {
		return
	}
	const width = 20
	full := done * width / of
	line := fmt.Sprintf("[%s%s] %3d%%  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), done*100/of, fmt.Sprintf(format, args...))
	if r := []rune(line); len(r) > 79 {
		line = string(r[:78]) + "…"
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s", line)
	b.drawn = true
}

// clear takes it away.
func (b *bar) clear() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}

// say writes a line that stays.
func (b *bar) say(format string, args ...any) {
	b.clear()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// size is a number of bytes for people.
func size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
