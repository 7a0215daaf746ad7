//go:build !linux

package clienttest

import "syscall"

func boundToUs() *syscall.SysProcAttr { return nil }
