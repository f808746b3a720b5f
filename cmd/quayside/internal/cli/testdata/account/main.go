//go:build linux

// Account runs a program and prints its processor time in nanoseconds and its
// peak memory in bytes. It is a program of its own because a child's peak
// begins with its parent's.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		fmt.Fprintln(os.Stderr, "the system keeps no account of children")
		os.Exit(1)
	}
	fmt.Println(int64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), used.Maxrss<<10)
}
