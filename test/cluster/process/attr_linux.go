package process

import "syscall"

// dieWithParent has the kernel kill the child when the test ends without
// having stopped it, by a timeout or a panic.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
