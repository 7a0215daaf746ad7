package group

// Configure changes the settings between two steps. What has been promised holds:
// timers that run keep their deadlines, members their session timeouts.
func (m *Machine) Configure(c Config) {
	if c.ResidentOffsets == 0 {
		c.ResidentOffsets = m.cfg.ResidentOffsets
	}
	sooner := c.Retention < m.cfg.Retention
	m.cfg = c
	m.sweep.interval = c.RetentionCheckInterval
	if !sooner {
		return
	}
	// When to look at each was reckoned with the longer time.
	for _, id := range m.sorted() {
		if e := m.dir[id]; e.stored {
			m.checkSoon(e)
		}
	}
}
