package group

// PendingOf asks in which groups a producer has offsets that wait for the end of its
// transaction. It is answered by a []string, sorted.
type PendingOf struct{ Producer int64 }

// Entity is part of Request.
func (r PendingOf) Entity() (string, bool) { return "", false }
