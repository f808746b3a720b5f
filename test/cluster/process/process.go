// Package process runs the servers of a test as child processes. It writes their output to log files. It ends
// them by a signal and, if necessary, a kill. No child remains if the test itself dies.
//
// Start from [Start], [Process.Stop] and [Process.Tail].
package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Spec is a program with its arguments.
type Spec struct {
	Name string   // "kube-apiserver"; also the log file's name
	Args []string // the program's path and its arguments
	Env  []string // "KEY=value", added to the test's environment
	Dir  string   // working directory; "" is the test's own
}

// Process is a started child process. It is safe for concurrent use.
type Process struct {
	Spec    Spec
	logFile string
	pid     int
	done    chan struct{} // closed once the child has ended
	err     error         // exit error; read it only after done is closed
}

// Start starts the program without waiting for it. Its output is appended to Name.log in logDir.
func Start(spec Spec, logDir string) (*Process, error) {
	p := &Process{Spec: spec, logFile: filepath.Join(logDir, spec.Name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(spec.Args[0], spec.Args[1:]...)
	cmd.Env = append(cmd.Environ(), spec.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Dir, log, log
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// The kernel kills the child when the thread that started the child ends. So this thread only waits for
		// the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer log.Close()
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("starting %s: %w", spec.Name, err)
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Done returns a channel that is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Pid returns the child's process identifier.
func (p *Process) Pid() int { return p.pid }

// Stop signals the child to end, and kills the child if it still runs after grace. It returns when the child
// has ended. If the child has already ended, this is not an error.
func (p *Process) Stop(grace time.Duration) error {
	child, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	_ = child.Signal(syscall.SIGTERM) // it may end by itself meanwhile
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	_ = child.Kill()
	<-p.done
	return fmt.Errorf("%s did not end within %s", p.Spec.Name, grace)
}

// Kill ends the child immediately, like a crash, and returns when it has ended.
func (p *Process) Kill() {
	if child, err := os.FindProcess(p.pid); err == nil && p.Ended() == nil {
		_ = child.Kill() // it may end by itself meanwhile
	}
	<-p.done
}

// Ended returns nil while the child runs, and otherwise an error with its exit status and the end
// of its log.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended (%v); the end of its log:\n%s", p.Spec.Name, p.err, p.Tail(20))
	default:
		return nil
	}
}

// Tail returns at most the last n lines of the child's log.
func (p *Process) Tail(n int) string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n-1):], nil))
}
