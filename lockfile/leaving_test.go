package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// lockWithLeaving returns the sample lock, extended by a leaving operator that a pin of the lock replaces.
func lockWithLeaving() *lockfile.File {
	f := sampleLock()
	old := f.Pins[1]
	old.Namespace, old.Package, old.Bundle = "old-etcd", "etcd-classic", "classic.v0.9.4"
	f.Leaving = []lockfile.Leaving{{ReplacedBy: f.Pins[1].Key(), Pin: old}}
	return f
}

// TestLeaving fixes the format of replaced operators. A separate list contains their last pins.
func TestLeaving(t *testing.T) {
	f := lockWithLeaving()
	text := string(lockfile.Format(f))
	const want = "\nleaving:\n\n- replacedBy: my-etcd/etcd\n  namespace: old-etcd\n  package: etcd-classic\n"
	if !strings.Contains(text, want) {
		t.Fatalf("got %s", text)
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(f.Leaving[0].Pin, got.Leaving[0].Pin, ignorePos()); d != "" {
		t.Errorf("the parsed lock differs from the formatted one\n%s", d)
	}
	if again := string(lockfile.Format(got.With(got.Pins))); again != text {
		t.Errorf("not canonical: %s", cmp.Diff(text, again))
	}
	for _, c := range []struct {
		before, after *lockfile.File
		kind          lockfile.ChangeKind
	}{{sampleLock(), got, lockfile.Added}, {got, sampleLock(), lockfile.Removed}} {
		changes := lockfile.Diff(c.before, c.after)
		if len(changes) != 1 || changes[0].Kind != c.kind || changes[0].Leaving != "my-etcd/etcd" || changes[0].Package != "etcd-classic" || changes[0].Pruned {
			t.Errorf("got %+v", changes)
		}
	}
	pruned := lockWithLeaving()
	pruned.Leaving[0].ReplacedBy = ""
	if changes := lockfile.Diff(sampleLock(), pruned); len(changes) != 1 || !changes[0].Pruned || changes[0].Leaving != "" {
		t.Errorf("without a successor: got %+v", changes)
	}
}

// TestLeaves checks that LeavingOperator finds the leaving operators, and no others.
func TestLeaves(t *testing.T) {
	f := lockWithLeaving()
	second := f.Leaving[0]
	second.Package = "etcd-older"
	f.Leaving = append(f.Leaving, second)
	for _, want := range f.Leaving {
		if got, ok := f.LeavingOperator(want.Key()); !ok || got.Package != want.Package {
			t.Errorf("%s: got %q, %v", want.Key(), got.Package, ok)
		}
	}
	for _, pin := range f.Pins {
		if got, ok := f.LeavingOperator(pin.Key()); ok {
			t.Errorf("%s is not leaving: got %+v", pin.Key(), got)
		}
	}
}

// TestLeavingFaults parses locks whose leaving operators contradict the pins.
func TestLeavingFaults(t *testing.T) {
	for _, c := range []struct {
		says string
		edit func(f *lockfile.File)
	}{
		{`leaving operator "my-etcd/etcd": the operator is also pinned`, func(f *lockfile.File) { f.Leaving[0].Namespace, f.Leaving[0].Package = "my-etcd", "etcd" }},
		{`leaving operator "old-etcd/etcd-classic": its successor "a/b" is not pinned`, func(f *lockfile.File) { f.Leaving[0].ReplacedBy = "a/b" }},
		{`its successor "old-etcd/etcd-classic" is not pinned`, func(f *lockfile.File) { f.Leaving[0].ReplacedBy = "old-etcd/etcd-classic" }},
		{`leaving operator "old-etcd/etcd-classic" appears twice`, func(f *lockfile.File) { f.Leaving = append(f.Leaving, f.Leaving[0]) }},
	} {
		f := lockWithLeaving()
		c.edit(f)
		if _, err := lockfile.Parse("quayside.lock", lockfile.Format(f)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
	text := strings.Replace(string(lockfile.Format(lockWithLeaving())), "package: etcd-classic", "package: etcd-other", 1)
	if _, err := lockfile.Parse("quayside.lock", []byte(text)); err == nil || !strings.Contains(err.Error(), "does not match its checksum") {
		t.Errorf("edited: got %v", err)
	}
}
