package group

import "io"

// Dump writes the hard state that is in memory in words, the same for the same
// state: how tests compare what is live with what a replay gives.
func (m *Machine) Dump(w io.Writer) { m.hard.Dump(w) }
