//go:build unix

package helm

import (
	"syscall"
	"time"
)

// childrenCPU returns the CPU time of the child processes that have ended.
func childrenCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
