// Package table prints rows for people: columns aligned, and no line wider than
// asked for, since wrapped lines of a table cannot be read. What does not fit is
// shortened in the middle of its widest cells, for ids that begin alike differ at
// their ends.
package table

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const gap = 2 // spaces between columns

// Table is a header and rows of as many cells.
type Table struct {
	header  []string
	rows    [][]string
	numbers map[int]bool
}

// New makes a table. A header that begins with ">" is of a column of numbers,
// which stand to the right.
func New(header ...string) *Table {
	t := &Table{numbers: map[int]bool{}}
	for i, h := range header {
		name, number := strings.CutPrefix(h, ">")
		t.header = append(t.header, name)
		t.numbers[i] = number
	}
	return t
}

// Row adds a row. An empty cell is shown as "-".
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.header))
	for i := range row {
		row[i] = "-"
		if i < len(cells) && cells[i] != "" {
			row[i] = Plain(cells[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Plain writes what is no text as Go does, "\x1b" for one: names are clients' choice, and
// must neither break lines nor be a terminal's commands.
func Plain(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Print writes the table, at most width columns wide; 0 is without a limit.
func (t *Table) Print(w io.Writer, width int) error {
	widths := t.widths(width)
	b := bufio.NewWriter(w)
	for _, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			cell = Fit(cell, widths[i])
			pad := strings.Repeat(" ", widths[i]-columns(cell))
			if t.numbers[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
			line.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.Flush()
}

// widths takes from the widest columns until all fit. A header is never cut.
func (t *Table) widths(limit int) []int {
	widths, least := make([]int, len(t.header)), make([]int, len(t.header))
	total := -gap
	for i, h := range t.header {
		least[i] = max(columns(h), 3)
		widths[i] = columns(h)
		for _, row := range t.rows {
			widths[i] = max(widths[i], columns(row[i]))
		}
		total += widths[i] + gap
	}
	for limit > 0 && total > limit {
		widest := -1
		for i, n := range widths {
			if n > least[i] && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// Fit cuts a text in its middle to a number of columns of a terminal.
func Fit(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	runes := []rune(s)
	from, to := 0, len(runes)
	for room := (limit - 1) / 2; from < to && column(runes[from]) <= room; from++ {
		room -= column(runes[from])
	}
	for room := limit - 1 - columns(string(runes[:from])); to > from && column(runes[to-1]) <= room; to-- {
		room -= column(runes[to-1])
	}
	return string(runes[:from]) + "…" + string(runes[to:])
}

// columns is how many a text takes on a terminal.
func columns(s string) (n int) {
	for _, r := range s {
		n += column(r)
	}
	return n
}

// column is how many a character takes: two for those of East Asian scripts, none for accents.
func column(r rune) int {
	switch {
	case r < unicode.MaxLatin1:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Count is a number of things in words.
func Count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
