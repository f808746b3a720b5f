// Package process runs the servers of a test as child processes: output into a
// log file, a signal and then a kill to end them, and no child left behind
// when the test itself dies.
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

// Spec says what to run.
type Spec struct {
	Name string   // "kube-apiserver"; also the log file's name
	Args []string // the program's path and its arguments
	Env  []string // "KEY=value", beside the test's own environment
	Dir  string   // working directory; "" is the test's own
}

// Process is a child that was started. Its methods may be called at any time
// and from any goroutine.
type Process struct {
	Spec    Spec
	logFile string
	pid     int
	done    chan struct{} // closed once the child has ended
	err     error         // how it ended; read after done
}

// Start runs the program and returns at once. Its output is appended to
// Name.log in logDir.
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
		// The kernel's word to the child is tied to the thread that started
		// it, so that thread waits for the child and does nothing else.
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

// Done returns a channel that is closed once the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Pid returns the child's process identifier.
func (p *Process) Pid() int { return p.pid }

// Stop asks the child to end and kills it where it has not done so after
// grace. It returns once the child is gone; a child that ended before is no
// error.
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

// Kill ends the child at once, as a crash would, and returns once it is gone.
func (p *Process) Kill() {
	if child, err := os.FindProcess(p.pid); err == nil && p.Ended() == nil {
		_ = child.Kill() // it may end by itself meanwhile
	}
	<-p.done
}

// Ended returns nil while the child runs, else an error that says how it ended
// and with which last words.
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
