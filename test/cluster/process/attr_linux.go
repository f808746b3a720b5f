package process

import "syscall"

// dieWithParent makes the kernel kill the child if the test ends without stopping it, for example
// by a timeout or a panic.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
