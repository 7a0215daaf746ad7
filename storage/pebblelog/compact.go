package pebblelog

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactionRest is how long after its opening the database compacts nothing. A
// compaction would take half of a small machine while clients wait for their
// first answers, and pebble's Open itself waits for one that its flush has set off
// (hundreds of milliseconds). Shorter than what fills L0 up to where writes stop.
const compactionRest = time.Second

// stopWrites is the number of levels in L0 at which writes stop.
const stopWrites = 24

// rest is how long compactions rest. A process that ends within each rest, and is started
// again, leaves a level or more in L0 every time: at half of what stops writes there is no rest.
func (b *Backend) rest() time.Duration {
	if b.db.Metrics().Levels[0].Sublevels >= stopWrites/2 {
		return 0
	}
	return compactionRest
}

// compactions lets pebble compact, one at a time, once it has been begun.
type compactions struct {
	db pebble.DBForCompaction // set by Register, before anything else

	mu       sync.Mutex
	begun    bool
	closed   bool
	running  bool
	refused  bool           // TrySchedule refused since the last take
	granting sync.WaitGroup // grant's calls of db, which Unregister waits for
}

var (
	_ pebble.CompactionScheduler   = (*compactions)(nil)
	_ pebble.CompactionGrantHandle = (*compactions)(nil)
)

// begin allows compactions from here on.
func (c *compactions) begin() {
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	c.grant()
}

// grant runs the compaction that waits, if one does and may.
func (c *compactions) grant() {
	for again := true; again; {
		if !c.take() {
			return
		}
		// mu is not held: pebble's own lock comes first.
		waiting, _ := c.db.GetWaitingCompaction()
		again = !(waiting && c.db.Schedule(c)) && c.giveBack()
		c.granting.Done()
	}
}

// free says whether a compaction may run.
//
// REQUIRES: mu held.
func (c *compactions) free() bool { return c.begun && !c.closed && !c.running }

// take makes the one compaction ours and registers calls of db.
func (c *compactions) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free() {
		return false
	}
	c.running, c.refused = true, false
	c.granting.Add(1)
	return true
}

// giveBack ends a take, also one that nothing came of. It says whether somebody was
// refused meanwhile, who will not ask again.
func (c *compactions) giveBack() (refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	return c.refused
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) { c.db = db }

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.granting.Wait()
}

// TrySchedule implements pebble.CompactionScheduler.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.free() {
		c.refused = true
		return false, nil
	}
	c.running = true
	return true, c
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler: it is
// always one.
func (c *compactions) UpdateGetAllowedWithoutPermission() {}

// Started implements pebble.CompactionGrantHandle.
func (c *compactions) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (c *compactions) Done() {
	c.giveBack()
	c.grant()
}
