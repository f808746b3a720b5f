package lockfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// TestErrors fixes the message and the position of each fault.
func TestErrors(t *testing.T) {
	text := string(lockfile.Format(sampleLock()))
	edit := func(old, new string) string {
		if strings.Count(text, old) == 0 {
			t.Fatalf("%q is not in the sample", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	const undo = ": undo the edit, or delete the block and run 'quayside resolve'"
	for name, c := range map[string]struct{ in, want string }{
		"edited pin":          {edit("version: 0.9.4", "version: 0.9.5"), `quayside.lock:17:3: pin "my-etcd/etcd" does not match its checksum on line 54: undo the edit, or run 'quayside resolve --edited', which upgrades it to "0.9.5"`},
		"edited catalog":      {edit("oci:catalogs/hub", "oci:catalogs/hut"), `quayside.lock:17:3: pin "my-etcd/etcd" does not match its checksum on line 54` + undo},
		"edited config":       {edit("fieldPath: x", "fieldPath: y"), `quayside.lock:17:3: pin "my-etcd/etcd" does not match its checksum on line 54` + undo},
		"broken image digest": {edit("etcd@sha256:", "etcd@sha255:"), `quayside.lock:22:10: digest "sha255:c38cbd92fce41312f3fbdce60510013b7f0d4004a03b45c8e762f98f1ed4006c": must be sha256: and 64 hexadecimal digits`},
		"broken digest":       {edit("contentDigest: sha256:0", "contentDigest: sha256:x"), `quayside.lock:11:18: digest "sha256:x6298432e8066b29e2223bcc23aa9504b56ae508fabf3435508869b9c3190e22": must be sha256: and 64 hexadecimal digits`},
		"no checksum":         {text[:strings.LastIndex(text, "  checksum")], `quayside.lock:17:3: pin "my-etcd/etcd" has no checksum` + undo},
		"unknown field":       {edit("operatorGroup:", "operatorGroups:"), `quayside.lock:28:3: unknown field "operatorGroups" (did you mean "operatorGroup"?)`},
		"unknown section":     {edit("pins:", "pin:"), `quayside.lock:5:1: unknown field "pin" (did you mean "pins"?)`},
		"missing field":       {edit("  bundle: \"no\"\n", ""), `quayside.lock:7:3: pin: no bundle`},
		"install mode":        {edit("installMode: Own", "installMode: Some"), `quayside.lock:26:16: install mode "SomeNamespace": must be one of AllNamespaces, MultiNamespace, SingleNamespace, OwnNamespace`},
		"newer schema":        {edit("v1alpha1", "v1beta1"), `quayside.lock:2:13: written by a newer quayside (schema quayside.dev/v1beta1; this version supports quayside.dev/v1alpha1)`},
		"newer, other fields": {"apiVersion: quayside.dev/v2\nkind: Lock\nanchors: {}\n", `quayside.lock:1:13: written by a newer quayside (schema quayside.dev/v2; this version supports quayside.dev/v1alpha1)`},
		"schema 2":            {edit("schema: 1", "schema: 2\nanchors: {}"), `quayside.lock:4:9: written by a newer quayside (schema 2; this version supports 1)`},
		"schema 0":            {edit("schema: 1", "schema: 0"), `quayside.lock:4:9: unknown schema 0 (expected 1)`},
		"no schema":           {edit("schema: 1\n", ""), `quayside.lock:2:1: no schema (expected 1): restore the lock from Git, or delete it and run 'quayside resolve'`},
		"other file":          {"apiVersion: v1\nkind: ConfigMap\n", "quayside.lock:1:13: apiVersion: \"v1\": must be quayside.dev/v1alpha1\nquayside.lock:2:7: kind: \"ConfigMap\": must be Lock"},
		"other kind":          {"apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n", `quayside.lock:2:7: kind: "Workspace": must be Lock`},
		"no header":           {"pins: []\n", "quayside.lock:1:1: no apiVersion (expected quayside.dev/v1alpha1)\nquayside.lock:1:1: no kind (expected Lock)"},
		"empty":               {"", `quayside.lock: expected one YAML document, got 0: restore the lock, or delete it and run 'quayside resolve'`},
		"conflict":            {edit("  version: 0.9.4\n", "<<<<<<< HEAD\n  version: 0.9.4\n=======\n  version: 0.9.5\n>>>>>>> other\n"), `quayside.lock:19:1: unfinished merge: run 'quayside resolve', which takes the pins of both sides`},
		"syntax":              {edit("kind: Lock", "kind: [Lock"), `quayside.lock:3: malformed YAML: did not find expected ',' or ']'`},
		"twice":               {text + strings.TrimPrefix(text[strings.Index(text, "\n- namespace: apps"):strings.LastIndex(text, "- namespace: my-etcd")], "\n"), `quayside.lock:56:3: pin "apps/cert" appears twice, first on line 7: delete one block, or take one side with 'git checkout --theirs' or '--ours', and run 'quayside resolve'`},
	} {
		_, err := lockfile.Parse("quayside.lock", []byte(c.in))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// byteStep returns the distance between the bytes that a test changes: 3 with -short, otherwise 1.
func byteStep() int {
	if testing.Short() {
		return 3
	}
	return 1
}

// TestEveryEditIsFound changes each byte of a lock in turn. If Parse accepts the text, it must return the same
// lock.
func TestEveryEditIsFound(t *testing.T) {
	want := sampleLock()
	text := lockfile.Format(want)
	for i := 0; i < len(text); i += byteStep() {
		edited := append([]byte(nil), text...)
		edited[i] ^= 1
		got, err := lockfile.Parse("quayside.lock", edited)
		if err == nil && !cmp.Equal(want, got, ignorePos(), cmpopts.EquateEmpty()) {
			t.Errorf("byte %d (%q to %q): undetected change of the lock: %s", i, text[i], edited[i], cmp.Diff(want, got, ignorePos()))
		}
	}
}

// TestEdited edits the versions of pins, and then changes each byte in turn. If ParseEdited accepts the result,
// it must return the original lock and the edited versions.
func TestEdited(t *testing.T) {
	want := sampleLock()
	text := strings.Replace(string(lockfile.Format(want)), "version: 0.9.4\n", "version: 0.10.0-rc.1+x\n", 1)
	asked := lockfile.Edit{Namespace: "my-etcd", Package: "etcd", Version: "0.10.0-rc.1+x"}
	before, _, _ := strings.Cut(text, "version: "+asked.Version)
	asked.Pos = diag.Pos{File: "quayside.lock", Line: 1 + strings.Count(before, "\n"), Col: len("  version: ") + 1}
	got, edits, err := lockfile.ParseEdited("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the original lock (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]lockfile.Edit{asked}, edits); d != "" {
		t.Errorf("edits (-want +got):\n%s", d)
	}
	for i := 0; i < len(text); i += byteStep() {
		edited := []byte(text)
		edited[i] ^= 1
		got, edits, err := lockfile.ParseEdited("quayside.lock", edited)
		if err != nil {
			continue
		}
		if d := cmp.Diff(want, got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("byte %d (%q to %q): undetected change of the lock: %s", i, text[i], edited[i], d)
		}
		for _, e := range edits {
			if !strings.Contains(string(edited), "version: "+e.Version+"\n") && !strings.Contains(string(edited), "version: \""+e.Version+"\"\n") {
				t.Errorf("byte %d (%q to %q): edit %+v is not in the text", i, text[i], edited[i], e)
			}
		}
	}
	if _, edits, err := lockfile.ParseEdited("quayside.lock", lockfile.Format(want)); err != nil || edits != nil {
		t.Errorf("without edits: %v, %v", edits, err)
	}
	other := strings.Replace(text, "operatorGroup: og", "operatorGroup: other", 1)
	if _, _, err := lockfile.ParseEdited("quayside.lock", []byte(other)); err == nil || !strings.Contains(err.Error(), "does not match its checksum") {
		t.Errorf("with an edit of another field: %v", err)
	}
}

func TestLineEndings(t *testing.T) {
	text := strings.ReplaceAll(string(lockfile.Format(sampleLock())), "\n", "\r\n")
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sampleLock(), got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestPin(t *testing.T) {
	f := sampleLock()
	if p, ok := f.Pin("my-etcd", "etcd"); !ok || p.Version != "0.9.4" {
		t.Errorf("got %v, %v", p.Version, ok)
	}
	if _, ok := f.Pin("apps", "etcd"); ok {
		t.Error("found a package in a namespace without its pin")
	}
	if cats := f.Catalogs(); len(cats) != 2 || cats[0].ID.Name != "cluster" || cats[1].Source != "oci:catalogs/hub" {
		t.Errorf("got %v", cats)
	}
	cert, _ := f.Pin("apps", "cert")
	if got := f.RequiredBy(cert); len(got) != 1 || got[0].Pin != "my-etcd/etcd" || got[0].Requirement != "olm.gvk.required cert/v1 Cert" {
		t.Errorf("required by %v", got)
	}
	if p, _ := f.Pin("my-etcd", "etcd"); p.Subscription() != "etcd" || p.Generated() || cert.Subscription() != "cert--cluster" || !cert.Generated() {
		t.Errorf("subscriptions %q and %q", p.Subscription(), cert.Subscription())
	}
}

func TestNewDoesNotModifyItsArguments(t *testing.T) {
	pins := []lockfile.Pin{{Namespace: "b", Package: "x", WatchNamespaces: []string{"z", "a"}, Properties: []catalog.Property{{Type: "t", Value: []byte(`{"b":1, "a":2}`)}}}, {Namespace: "a", Package: "y"}}
	lockfile.New(pins)
	if pins[0].Package != "x" || pins[0].WatchNamespaces[0] != "z" || string(pins[0].Properties[0].Value) != `{"b":1, "a":2}` {
		t.Errorf("arguments were modified: %v", pins)
	}
}

func TestDiff(t *testing.T) {
	old := sampleLock()
	next := sampleLock()
	next.Pins[0].Approval = "Manual"
	next.Pins[0].Hold = ""
	next.Pins[1].Version, next.Pins[1].Bundle = "0.9.5", "etcdoperator.v0.9.5"
	next.Pins = append(next.Pins, lockfile.Pin{Namespace: "z", Package: "new", Version: "1.0.0", Bundle: "new.v1.0.0"})
	old.Pins = append(old.Pins, lockfile.Pin{Namespace: "b", Package: "gone", Version: "2.0.0", Bundle: "gone.v2.0.0"})
	want := []lockfile.Change{
		{Kind: lockfile.Changed, Namespace: "apps", Package: "cert", From: "1.0", To: "1.0", Fields: []string{"approval", "hold"}},
		{Kind: lockfile.Removed, Namespace: "b", Package: "gone", From: "2.0.0"},
		{Kind: lockfile.Moved, Namespace: "my-etcd", Package: "etcd", From: "0.9.4", To: "0.9.5", Fields: []string{"bundle", "version"}},
		{Kind: lockfile.Added, Namespace: "z", Package: "new", To: "1.0.0"},
	}
	if d := cmp.Diff(want, lockfile.Diff(old, next)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := lockfile.Diff(old, old); len(got) != 0 {
		t.Errorf("a lock differs from itself: %v", got)
	}
	if got := lockfile.Diff(nil, sampleLock()); len(got) != 2 {
		t.Errorf("got %d changes from nothing, want 2", len(got))
	}
}

// TestBranchesMerge merges two branches with Git. Each branch adds and changes pins.
func TestBranchesMerge(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	pin := func(ns, version string) lockfile.Pin {
		return lockfile.Pin{Namespace: ns, Package: "p", Version: version, Bundle: "p.v" + version, Approval: "Automatic", RequestedBy: []string{ns + "/p"}}
	}
	base := []lockfile.Pin{pin("b", "1.0.0"), pin("d", "1.0.0"), pin("f", "1.0.0")}
	ours := []lockfile.Pin{pin("a", "1.0.0"), pin("b", "1.0.0"), pin("d", "2.0.0"), pin("f", "1.0.0")}
	theirs := []lockfile.Pin{pin("b", "1.0.0"), pin("d", "1.0.0"), pin("e", "3.0.0"), pin("f", "2.0.0")}
	want := lockfile.New([]lockfile.Pin{pin("a", "1.0.0"), pin("b", "1.0.0"), pin("d", "2.0.0"), pin("e", "3.0.0"), pin("f", "2.0.0")})

	dir := t.TempDir()
	var files []string
	for i, pins := range [][]lockfile.Pin{ours, base, theirs} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, lockfile.Format(lockfile.New(pins)), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	out, err := exec.Command(git, append([]string{"merge-file", "-p"}, files...)...).Output()
	if err != nil {
		t.Fatalf("git could not merge: %v\n%s", err, out)
	}
	got, err := lockfile.Parse("quayside.lock", out)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff(string(lockfile.Format(want)), string(out)); d != "" {
		t.Errorf("the merged text is not canonical: -want +got\n%s", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(lockfile.Format(sampleLock()))
	f.Add(lockfile.Format(lockWithNamespaces()))
	f.Add(lockfile.Format(lockfile.New(nil)))
	f.Add([]byte("apiVersion: quayside.dev/v1alpha1\nkind: Lock\nschema: 1\npins: [{namespace: a, package: b, version: c, bundle: d, config: [1, {x: ~}]}]\n"))
	f.Add([]byte("<<<<<<< HEAD\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := lockfile.Parse("f", in)
		if err != nil {
			lines := strings.Split(string(in), "\n")
			var faults diag.List
			errors.As(err, &faults)
			for _, e := range faults {
				if e.Pos.Line > len(lines) || e.Pos.Line > 0 && e.Pos.Col > len(lines[e.Pos.Line-1])+1 {
					t.Errorf("%v: the position is outside of the file", e)
				}
			}
			return
		}
		text := lockfile.Format(got)
		again, err := lockfile.Parse("f", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if string(lockfile.Format(again)) != string(text) {
			t.Errorf("not canonical:\n%s", text)
		}
	})
}

// FuzzFormat formats a lock with arbitrary text and JSON. Parse must return the same values.
func FuzzFormat(f *testing.F) {
	f.Add("a: b", `{"a":[[1,[2]],{"b":{}}],"":null}`)
	f.Add("no", `[[[]],[{"x":[{}]}]]`)
	f.Add("\u0085\u2028\x7f\ufeff", `"\ud83d\ude00"`)
	f.Add("2001-01-01", `1e400`)
	f.Add("- x", `-0.0`)
	f.Fuzz(func(t *testing.T, s, raw string) {
		if !json.Valid([]byte(raw)) || !utf8.ValidString(s) || !utf8.ValidString(raw) {
			return
		}
		if _, err := yamlnode.Canonical([]byte(raw)); err != nil {
			return
		}
		want := lockfile.New([]lockfile.Pin{{
			Catalog: lockfile.Catalog{ID: catalog.ID{Name: "c" + strings.ReplaceAll(s, "/", "")}, Source: "s" + s, Identity: s}, RequestedBy: []string{s, "x" + s},
			Requires:  []lockfile.Requirement{{Requirement: "r" + s, Pin: "p" + s}},
			Namespace: "n", Package: "p", Version: "1.0.0", Bundle: "b" + s, Hold: s, Skipped: []string{"x" + s}, Config: []byte(raw),
			Properties: []catalog.Property{{Type: "t" + s, Value: json.RawMessage(raw)}}, RelatedImages: []catalog.RelatedImage{{Name: s, Image: "i"}},
		}})
		want.Namespaces = []lockfile.Namespace{{Name: "n" + s, Labels: map[string]string{s: s}, Annotations: map[string]string{"a" + s: s, "b": ""}}}
		got, err := lockfile.Parse("f", lockfile.Format(want))
		if err != nil {
			t.Fatalf("%v\n%s", err, lockfile.Format(want))
		}
		if d := cmp.Diff(want, got, ignorePos(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
}
