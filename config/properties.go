package config

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// readProperties reads a file in the format of Java's Properties, in which the
// broker's server.properties is: comments with # and !, keys that end with =, :
// or white space, lines continued by a backslash, escapes. Of a key that is said
// twice the later line counts, as in Java; unlike there, text is UTF-8.
func readProperties(file string) ([]Setting, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, cannotRead(file, err)
	}
	var all []Setting
	for _, l := range logicalLines(string(raw)) {
		k, v := splitProperty(l.text)
		key, err := unescape(k)
		if err == nil {
			v, err = unescape(v)
		}
		if err != nil {
			return nil, fmt.Errorf("config: %s line %d: %w", file, l.number, err)
		}
		all = append(all, Setting{Key: key, Value: v, From: fmt.Sprintf("in %s line %d", file, l.number), broker: true})
	}
	return all, nil
}

func cannotRead(file string, err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // file is said already
	}
	return fmt.Errorf("config: cannot read %s: %w", file, err)
}

type logicalLine struct {
	text   string
	number int // of its first natural line, from 1
}

const white = " \t\f"

// logicalLines joins continued lines, and leaves out comments and empty ones.
func logicalLines(text string) []logicalLine {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var all []logicalLine
	continued := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimLeft(line, white)
		if !continued && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		slashes := len(line) - len(strings.TrimRight(line, `\`))
		more := slashes%2 == 1
		if more {
			line = line[:len(line)-1]
		}
		if continued {
			all[len(all)-1].text += line
		} else {
			all = append(all, logicalLine{line, i + 1})
		}
		continued = more
	}
	return all
}

// splitProperty splits at the first =, : or white space that is not escaped.
func splitProperty(line string) (key, value string) {
	end := len(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		} else if strings.IndexByte("=:"+white, line[i]) >= 0 {
			end = i
			break
		}
	}
	key, value = line[:end], strings.TrimLeft(line[end:], white)
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], white)
	}
	return key, value
}

var escapes = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'u' {
			if i+5 > len(s) {
				return "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u needs four hexadecimal digits, not %q`, s[i+1:i+5])
			}
			b.WriteRune(rune(n))
			i += 4
		} else if c, ok := escapes[s[i]]; ok {
			b.WriteByte(c)
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
