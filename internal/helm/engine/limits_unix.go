//go:build unix

package engine

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// Limits of the process, which the kernel enforces.
const (
	maxProcessCPU = 120       // seconds; a process ends earlier, at usedUpCPU
	usedUpCPU     = 60        // seconds; the process then accepts no other chart
	maxData       = 768 << 20 // bytes of private memory; the limit of a chart is lower
)

// limitProcess gives up the permission to open files and connections, and limits memory and CPU time. If it
// fails, the process must not run templates.
func limitProcess() error {
	limitRuntime()
	time.Local = time.UTC // do not read the time zone of the machine
	if runtime.GOOS == "linux" {
		if err := limit(syscall.RLIMIT_DATA, maxData); err != nil {
			return err
		}
	}
	if err := limit(syscall.RLIMIT_CPU, maxProcessCPU); err != nil {
		return err
	}
	if err := limit(syscall.RLIMIT_CORE, 0); err != nil {
		return err
	}
	return limit(syscall.RLIMIT_NOFILE, 0)
}

// limit lowers the soft and the hard limit of a resource to at most value.
func limit(resource int, value uint64) error {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(resource, &r); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	r.Max = min(r.Max, value)
	r.Cur = min(r.Cur, r.Max)
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(resource, &r))
}

// processCPU returns the CPU time of the process.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func processIsUsedUp() bool { return processCPU() > usedUpCPU*time.Second }
