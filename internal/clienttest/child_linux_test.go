package clienttest

import "syscall"

// boundToUs ends a child when the tests end in a way that runs no clean-up, as a
// time-out does.
func boundToUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
