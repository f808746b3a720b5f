package rules

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// parseSettings parses the spec of a quayside.yaml.
func parseSettings(t *testing.T, spec string) *settings.Workspace {
	t.Helper()
	w, err := settings.Parse(settings.FileName, []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: prod}\nspec:\n"+spec))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// list returns the findings as text, one a line.
func list(fs Findings) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.Rule + " " + string(f.Severity) + " " + f.Pos.String() + " " + f.Msg)
		if f.Code != "" {
			b.WriteString(" [" + f.Code + "]")
		}
		if f.Waived {
			b.WriteString(" (waived)")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestTable checks that each rule has a different ID, and that Evaluate sets the ID in findings.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table() {
		if seen[r.ID] {
			t.Errorf("two rules have the ID %s", r.ID)
		}
		seen[r.ID] = true
	}
}

// TestEvaluate evaluates rules that need no rendered tree.
func TestEvaluate(t *testing.T) {
	pin := func(namespace, pkg string, by ...string) lockfile.Pin {
		return lockfile.Pin{Namespace: namespace, Package: pkg, RequestedBy: by}
	}
	declared := func(pos int, namespace, pkg string) declare.Subscription {
		return declare.Subscription{Name: pkg, Namespace: namespace, Package: pkg, Pos: diag.Pos{File: "a.yaml", Line: pos, Col: 1}}
	}
	other := Other{
		Dir:      "dev",
		Settings: func() (*settings.Workspace, error) { return parseSettings(t, "  clusters: [{name: lab}]\n"), nil },
		Lock:     func() (*lockfile.File, error) { return nil, fs.ErrNotExist },
	}
	for name, c := range map[string]struct {
		spec  string
		about Part
		state State
		want  string
	}{
		"clusters of the policy": {
			spec: "  clusters: [{name: east}]\n  policy: {clusters: [{names: [eats, \"e*\"], failOn: low}]}\n", about: Settings,
			want: "cluster-names error quayside.yaml:6:32 spec.policy.clusters[0].names[0]: no cluster \"eats\" in this workspace (available: east) (did you mean \"east\"?)\n",
		},
		"object of a waiver": {
			spec:  "  policy: {waivers: [{rule: two-owners, object: ops/ectd, reason: r, expires: 2026-12-31}, {rule: two-owners, object: ops/etcd, reason: r, expires: 2026-12-31}, {rule: two-owners, object: db/kafka, reason: r, expires: 2026-12-31}]}\n",
			about: Waivers, state: State{Lock: lockfile.New([]lockfile.Pin{pin("ops", "etcd")})},
			want: "unused-waivers warning quayside.yaml:5:49 spec.policy.waivers[0].object: no operator \"ops/ectd\" in quayside.lock (did you mean \"ops/etcd\"?) [waiver-unused]\n",
		},
		"followed environment": {
			spec: "  follows: stage\n", about: Settings,
			want: "followed-environment error quayside.yaml:5:12 spec.follows: no environment \"stage\" (available: prod)\n",
		},
		"operators of clusters": {
			spec: "  clusters: [{name: east, operators: [\"*/etdc\", \"*/etcd\"]}]\n", about: Operators,
			state: State{Lock: &lockfile.File{Pins: []lockfile.Pin{pin("ops", "etcd")}}},
			want:  "cluster-operators error quayside.yaml:5:39 spec.clusters[0].operators[0]: no operator \"*/etdc\" in quayside.lock (available: ops/etcd)\n",
		},
		"operators of waivers": {
			spec: "  policy: {waivers: [{rule: crd.removed, operator: op/etcd, reason: x, expires: 2030-01-01}]}\n", about: Operators,
			state: State{Lock: &lockfile.File{Pins: []lockfile.Pin{pin("ops", "etcd")}}},
			want:  "waiver-operators error quayside.yaml:5:52 spec.policy.waivers[0].operator: no operator \"op/etcd\" in quayside.lock (did you mean \"ops/etcd\"?)\n",
		},
		"operators of windows": {
			spec: "  windows: [{kind: deny, schedule: \"0 0 * * *\", duration: 1h, operators: [\"op*\", ops/ectd, db/kafka]}]\n", about: Operators,
			state: State{Lock: &lockfile.File{Pins: []lockfile.Pin{pin("ops", "etcd")}}},
			want:  "window-operators error quayside.yaml:5:82 spec.windows[0].operators[1]: no operator \"ops/ectd\" in quayside.lock (did you mean \"ops/etcd\"?)\n",
		},
		"environments of windows": {
			spec: "  windows: [{kind: deny, schedule: \"0 0 * * *\", duration: 1h, environments: [\"pr*\", prd]}]\n", about: Settings,
			want: "window-environments error quayside.yaml:5:85 spec.windows[0].environments[1]: no environment \"prd\" (available: prod) (did you mean \"prod\"?)\n",
		},
		"unused waivers": {
			spec: "  policy: {waivers: [{rule: crd.removed, operator: other/vault, reason: x, expires: 2030-01-01}]}\n", about: Waivers,
			state: State{Lock: &lockfile.File{Pins: []lockfile.Pin{pin("ops", "etcd")}}},
			want:  "unused-waivers warning quayside.yaml:5:52 spec.policy.waivers[0].operator: no operator \"other/vault\" in quayside.lock (available: ops/etcd) [waiver-unused]\n",
		},
		"declared twice": {
			about: Declarations,
			state: State{Declared: func() *declare.Set {
				return &declare.Set{Subscriptions: []declare.Subscription{declared(1, "ops", "etcd"), declared(5, "ops", "etcd")}}
			}},
			want: "declared-twice error a.yaml:5:1 package \"etcd\" in namespace \"ops\" is declared twice, first at a.yaml:1:1\n",
		},
		"dropped path": {
			about: Requests,
			state: State{
				Lock:     &lockfile.File{Pins: []lockfile.Pin{pin("ops", "etcd", "ops/etcd")}},
				Declared: func() *declare.Set { return &declare.Set{} },
				Existing: func() []declare.Subscription { return nil },
				Base:     func(lockfile.Pin) []declare.Subscription { return []declare.Subscription{declared(3, "ops", "etcd")} },
			},
			want: "dropped-paths error a.yaml:3:1 spec.declarations no longer includes this declaration, but ops/etcd is pinned for it\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.state
			s.Dir, s.Settings = "prod", parseSettings(t, c.spec+"  requirements: enforce\n")
			s.InGit = func() bool { return true }
			s.Others = func() ([]Other, error) { return []Other{other}, nil }
			found, err := Evaluate(&s, c.about)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, list(found)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestErr checks that waived findings and warnings are no errors, and that errors keep their cause.
func TestErr(t *testing.T) {
	cause := errors.New("cause")
	found := Findings{
		{Severity: Warning, Msg: "warning", Code: "a"},
		{Severity: Error, Msg: "waived", Code: "b", Waived: true},
		{Severity: Error, Pos: diag.Pos{File: "b", Line: 1, Col: 1}, Msg: "second", Code: "c", Hint: "do it"},
		{Severity: Error, Pos: diag.Pos{File: "a", Line: 1, Col: 1}, Err: cause},
	}
	err := found.Err()
	if want := "a:1:1: cause\nb:1:1: second [c]\n  hint: do it"; err == nil || err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if ws := found.Warnings(); len(ws) != 1 || ws[0].Msg != "warning" {
		t.Errorf("got the warnings %v", ws)
	}
}

// TestRecreate checks entries of spec.recreate for a version that is not locked, and without an object.
func TestRecreate(t *testing.T) {
	entries := "  recreate: [{operator: a/b, version: 1.0.0, kind: Service, name: s}, {operator: a/b, version: 1.1.0, kind: Service, name: s}, {operator: a/c, version: 1.0.0, kind: Service, name: s}]\n"
	s := &State{
		Settings: parseSettings(t, entries), Rendered: &render.Result{},
		Lock: lockfile.New([]lockfile.Pin{{Namespace: "a", Package: "b", Version: "1.1.0"}}),
	}
	found, err := checkRecreate(s)
	if err != nil {
		t.Fatal(err)
	}
	want := " warning quayside.yaml:5:14 the entry is for version 1.0.0 of a/b, and 1.1.0 is locked: the entry has no effect; delete it after the upgrade [outdated-recreate]\n" +
		" error quayside.yaml:5:71 a/b 1.1.0 has no Service s\n" +
		" warning quayside.yaml:5:128 the entry has no effect: a/c is not in the lock: delete the entry [outdated-recreate]\n"
	if d := cmp.Diff(want, list(found)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
