package process_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quayside/quayside/test/cluster/process"
)

func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{Name: "child", Args: []string{"/bin/sh", "-c", script}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func awaitLog(t *testing.T, p *process.Process, text string) {
	t.Helper()
	for range 100 {
		if strings.Contains(p.Tail(10), text) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the log does not contain %q:\n%s", text, p.Tail(10))
}

func TestStop(t *testing.T) {
	p := start(t, "echo up; exec sleep 60")
	awaitLog(t, p, "up")
	if err := p.Ended(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Error(err)
	}
	if p.Ended() == nil {
		t.Error("it runs still")
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stopping it again: %v", err)
	}
}

func TestStopKillsUnresponsiveProcess(t *testing.T) {
	p := start(t, "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
	awaitLog(t, p, "deaf")
	err := p.Stop(200 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "did not end within") {
		t.Errorf("got error %v, want \"did not end\"", err)
	}
	if p.Ended() == nil {
		t.Error("it runs still")
	}
}

func TestEndedShowsLog(t *testing.T) {
	p := start(t, "echo one; echo two; echo three; exit 3")
	<-p.Done()
	err := p.Ended()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "three") {
		t.Errorf("got %v, want the exit status and the log", err)
	}
	if got, want := p.Tail(2), "two\nthree\n"; got != want {
		t.Errorf("the last two lines are %q, want %q", got, want)
	}
}

func TestStartNamesTheProgram(t *testing.T) {
	_, err := process.Start(process.Spec{Name: "child", Args: []string{"/nowhere/to/be/found"}}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "starting child") {
		t.Errorf("got error %v, want one that names the child", err)
	}
}
