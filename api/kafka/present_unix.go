//go:build unix

package kafka

import "syscall"

// present reads what has arrived already, and does not wait: so a large buffer is held
// for nobody who sends slowly. Ends and errors are left to the next read that may wait.
func (f *frames) present(b []byte) (n int) {
	if f.raw == nil {
		sc, ok := f.src.(syscall.Conn)
		if !ok {
			return 0
		}
		raw, err := sc.SyscallConn()
		if err != nil {
			return 0
		}
		f.raw = raw
	}
	err := f.raw.Read(func(fd uintptr) bool {
		got, err := syscall.Read(int(fd), b)
		if err == nil {
			n = got
		}
		return true
	})
	if err != nil {
		return 0
	}
	if n > 0 {
		f.act.Add(1)
	}
	return n
}
