package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kcoord/kcoord/groupmeta/recordjson"
)

type recordCommand struct {
	Decode decodeCommand `cmd:"" help:"Decode records: lines of JSON in, lines of JSON out."`
}

type decodeCommand struct {
	File string `arg:"" placeholder:"FILE" help:"Lines such as {\"type\":\"OffsetCommitValue\",\"key\":HEX,\"hex\":HEX}; - for stdin."`
}

// Run answers every line with a line, also those that cannot be read.
func (d *decodeCommand) Run() error {
	in := io.Reader(os.Stdin)
	if d.File != "-" {
		f, err := os.Open(d.File)
		if err != nil {
			return mistake{err}
		}
		defer f.Close()
		in = f
	}
	return decodeLines(in, os.Stdout)
}

func decodeLines(in io.Reader, out io.Writer) error {
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if _, err := w.Write(append(recordjson.DescribeLine(line), '\n')); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("reading: %w", err), w.Flush())
		}
	}
}
