//go:build !unix

package kafka

// present needs reads that don't wait.
func (f *frames) present([]byte) int { return 0 }
