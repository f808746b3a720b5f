//go:build unix

package helm

import (
	"runtime"
	"syscall"
	"time"
)

// childrenCPU returns the CPU time of the child processes that have ended.
func childrenCPU() time.Duration { return cpu(syscall.RUSAGE_CHILDREN) }

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration { return cpu(syscall.RUSAGE_SELF) }

func cpu(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// childrenRSS returns the memory in bytes of the largest child process that has ended.
func childrenRSS() int64 { return maxRSS(syscall.RUSAGE_CHILDREN) }

// ownRSS returns the peak memory of this process in bytes.
func ownRSS() int64 { return maxRSS(syscall.RUSAGE_SELF) }

func maxRSS(who int) int64 {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}
