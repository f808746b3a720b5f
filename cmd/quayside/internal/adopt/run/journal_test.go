package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/run"
	"github.com/quayside/quayside/internal/k8s"
)

// TestJournalOnDisk truncates the last line of a journal, as a crash may do, and continues the run. Of Secrets,
// the journal may contain only the metadata.
func TestJournalOnDisk(t *testing.T) {
	s, dir := newScene(t), filepath.Join(t.TempDir(), "plan.journal")
	secret := newRef("v1", "Secret", "ops", "etcd-cert")
	s.cluster.Put(k8s.With(newUIDObject("v1", "Secret", "ops", "etcd-cert", "u-secret", nil), any("c2VjcmV0"), "data", "password"))
	s.plan.Steps[0].Actions = append(s.plan.Steps[0].Actions, plan.Action{Do: plan.Save, Object: secret, UID: "u-secret"})
	again := func(only int) *run.Journal {
		t.Helper()
		j, err := run.OpenJournal(run.JournalDir(dir), s.plan)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Run(context.Background(), run.Input{CleanUp: true, Plan: s.plan, Rendered: s.rendered, Cluster: s.cluster, Journal: j, Clock: s.clock, Prompter: &quiet{}, Only: only}); err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := again(1)
	kept, err := j.Backup(secret)
	if err != nil || k8s.Text(kept, "metadata", "uid") != "u-secret" || kept["data"] != nil {
		t.Errorf("%v %v", kept, err)
	}
	log := filepath.Join(dir, "log.jsonl")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(log, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := run.OpenJournal(run.JournalDir(dir), s.plan); err != nil {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
	}
	if err := os.WriteFile(log, whole[:len(whole)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	again(0)
	if j, err = run.OpenJournal(run.JournalDir(dir), s.plan); err != nil || !j.HasEnded(1) || !j.HasEnded(9) {
		t.Error(err)
	}
	if err := os.WriteFile(log, []byte(strings.Replace(string(whole), `"schema":2`, `"schema":3`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run.OpenJournal(run.JournalDir(dir), s.plan); err == nil || !strings.Contains(err.Error(), "the journal has schema 3; this version supports 2") {
		t.Errorf("of another schema: %v", err)
	}
	if err := os.WriteFile(log, append([]byte("{}x\n"), whole...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run.OpenJournal(run.JournalDir(dir), s.plan); err == nil || !strings.Contains(err.Error(), "log.jsonl:1: not a journal entry") {
		t.Error(err)
	}
}
