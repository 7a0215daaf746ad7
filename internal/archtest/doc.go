// Package archtest holds the rules about who imports whom, as tests over the
// module's own source. The design stands on them: what decides (coordinator/group)
// must be deterministic and know nothing of disks, networks and clocks, so that a
// script can drive it and a crash anywhere can be played again.
package archtest
