package group

import "math"

// longest is the longest string that a record's key or an old value can hold.
// Kafka's protocol knows none that is longer; its flexible versions could carry them.
const longest = math.MaxInt16

func tooLong(s string) bool { return len(s) > longest }

// writable says whether what a join says can be written to a group's record.
func writable(r Join) bool {
	const uuid = 1 + 36 // is put behind the client's or the instance's id
	if tooLong(r.ProtocolType) || len(r.Client.ID)+uuid > longest || tooLong(r.Client.Host) {
		return false
	}
	if r.InstanceID != nil && len(*r.InstanceID)+uuid > longest {
		return false
	}
	for _, p := range r.Protocols {
		if tooLong(p.Name) {
			return false
		}
	}
	return true
}
