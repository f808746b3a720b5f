package lockfile_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

func lockWithNamespaces() *lockfile.File {
	f := sampleLock()
	f.Namespaces = []lockfile.Namespace{
		{Name: "my-etcd", Labels: map[string]string{"openshift.io/cluster-monitoring": "true", "a": ""}, Annotations: map[string]string{"note": "a: b # c\nd"}},
		{Name: "apps"},
	}
	return f
}

// TestNamespaces fixes the format of declared Namespaces, and checks that they do not affect the rest of the
// lock.
func TestNamespaces(t *testing.T) {
	text := string(lockfile.Format(lockWithNamespaces()))
	const want = `namespaces:

- name: apps
  checksum: sha256:a949528626e4462637cb5ff5da1fc45a648e9bd905895742e06a9c9a3d2f8e76

- name: my-etcd
  labels:
    a: ""
    openshift.io/cluster-monitoring: "true"
  annotations:
    note: "a: b # c\nd"
  checksum: sha256:c30f5184e3373a4a2da1a0ad6948f6e7a869fe7c779fd14584642701124e8a3b

`
	before, after, _ := strings.Cut(string(lockfile.Format(sampleLock())), "pins:\n")
	if d := cmp.Diff(before+want+"pins:\n"+after, text); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(lockfile.Format(lockWithNamespaces()), lockfile.Format(got)); d != "" || len(got.Namespaces) != 2 || got.Namespaces[1].Annotations["note"] != "a: b # c\nd" {
		t.Errorf("got %v %s", got.Namespaces, d)
	}
	if rest := got.With(nil); len(rest.Namespaces) != 2 || len(rest.Pins) != 0 {
		t.Errorf("With lost the Namespaces: %v", rest)
	}
}

func TestNamespaceFaults(t *testing.T) {
	text := string(lockfile.Format(lockWithNamespaces()))
	block := text[strings.Index(text, "- name: apps"):strings.Index(text, "- name: my-etcd")]
	for name, c := range map[string]struct{ old, new, want string }{
		"edited":      {`monitoring: "true"`, `monitoring: "false"`, `quayside.lock:10:3: Namespace "my-etcd" does not match its checksum on line 16: undo the edit, or delete the block and run 'quayside resolve'`},
		"no name":     {"- name: apps\n  checksum", "- checksum", `quayside.lock:7:3: Namespace: no name`},
		"not a text":  {`monitoring: "true"`, `monitoring: true`, `quayside.lock:13:38: labels.openshift.io/cluster-monitoring: expected a string, got the boolean true (put it in quotes)`},
		"twice":       {block, block + block, `quayside.lock:10:3: Namespace "apps" appears twice, first on line 7: delete one block, or take one side with 'git checkout --theirs' or '--ours', and run 'quayside resolve'`},
		"no checksum": {"- name: apps\n  checksum: ", "- name: apps\n  # ", `quayside.lock:7:3: Namespace "apps" has no checksum: undo the edit, or delete the block and run 'quayside resolve'`},
	} {
		in := strings.Replace(text, c.old, c.new, 1)
		if in == text {
			t.Fatalf("%s: %q is not in the lock", name, c.old)
		}
		_, err := lockfile.Parse("quayside.lock", []byte(in))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestEveryEditOfANamespaceIsFound changes each byte of the Namespace blocks in turn. Parse must detect each change.
func TestEveryEditOfANamespaceIsFound(t *testing.T) {
	text := lockfile.Format(lockWithNamespaces())
	want, err := lockfile.Parse("quayside.lock", text)
	if err != nil {
		t.Fatal(err)
	}
	for i := strings.Index(string(text), "namespaces:"); i < strings.Index(string(text), "pins:"); i++ {
		edited := append([]byte(nil), text...)
		edited[i] ^= 1
		got, err := lockfile.Parse("quayside.lock", edited)
		if err == nil && !cmp.Equal(want, got, ignorePos(), cmpopts.EquateEmpty()) {
			t.Errorf("byte %d (%q to %q): undetected change of the lock: %s", i, text[i], edited[i], cmp.Diff(want, got, ignorePos()))
		}
	}
}

func TestDiffOfNamespaces(t *testing.T) {
	next := lockWithNamespaces()
	next.Namespaces[0].Labels = map[string]string{"a": ""}
	next.Namespaces[1].Name = "web"
	want := []lockfile.Change{
		{Kind: lockfile.Removed, Namespace: "apps"},
		{Kind: lockfile.Changed, Namespace: "my-etcd", Fields: []string{"labels"}},
		{Kind: lockfile.Added, Namespace: "web"},
	}
	if d := cmp.Diff(want, lockfile.Diff(lockWithNamespaces(), next)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	changes := lockfile.Diff(nil, lockWithNamespaces())
	if len(changes) != 4 || changes[0].Namespace != "apps" || changes[0].Package != "" || changes[2].Package == "" {
		t.Errorf("want Namespaces, then pins: %v", changes)
	}
}

// TestNamespacesMerge merges two branches with Git. Each branch declares a Namespace and labels another one.
func TestNamespacesMerge(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	lock := func(labels map[string]string, names ...string) *lockfile.File {
		f := &lockfile.File{Pins: []lockfile.Pin{{Namespace: "b", Package: "p", Version: "1.0.0", Bundle: "p.v1.0.0", Catalog: lockfile.Catalog{ID: catalog.ID{Name: "c"}}}}}
		for _, name := range names {
			n := lockfile.Namespace{Name: name}
			if name == "d" {
				n.Labels = labels
			}
			f.Namespaces = append(f.Namespaces, n)
		}
		return f
	}
	label := map[string]string{"x": "y"}
	dir := t.TempDir()
	var files []string
	for i, f := range []*lockfile.File{lock(nil, "a", "b", "d", "f"), lock(nil, "b", "d", "f"), lock(label, "b", "d", "f", "g")} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, lockfile.Format(f), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	out, err := exec.Command(git, append([]string{"merge-file", "-p"}, files...)...).Output()
	if err != nil {
		t.Fatalf("git could not merge: %v\n%s", err, out)
	}
	if d := cmp.Diff(string(lockfile.Format(lock(label, "a", "b", "d", "f", "g"))), string(out)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
