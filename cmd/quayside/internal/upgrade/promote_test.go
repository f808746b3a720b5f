package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/lockfile"
)

// environment is a short description of an environment. bundles is the content of its catalog: "a@2" is version
// 2.0.0 of a, which replaces 1.0.0; "a@2 b@2 c=1" requires b >=2.0.0 and c =1.0.0; "a@2*" has different content
// than a@2.
type environment struct {
	bundles string // one bundle per line
	pins    string // "a@1 b@2": declared and pinned versions
	// declares lists the declarations: "a", "b<2" (version range), "c!" (on hold), "a^1" (startingCSV),
	// "groups" (two OperatorGroups); empty: the pinned operators.
	declares string
}

// open writes an environment to a directory with its name, and opens it.
func (e environment) open(tb fataler, base, name string) *upgrade.Environment {
	tb.Helper()
	dir := filepath.Join(base, name)
	writeFiles(tb, dir, "quayside.yaml", `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: test, namespace: olm, source: 'dir:catalog'}]
  kubernetesVersion: "1.34"
`)
	writeFiles(tb, dir, "catalog/all.yaml", e.catalog())
	pins := strings.Fields(e.pins)
	writeFiles(tb, dir, "subscriptions/all.yaml", newDeclaration(pins))
	p := openProject(tb, filepath.Join(base, "cache"), dir)
	in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions(), Fresh: true})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	res, err := workspace.Resolve(context.Background(), in)
	if err != nil || res.Failed != nil {
		tb.Fatalf("%s: %v %v", name, err, res)
	}
	writeFiles(tb, dir, workspace.LockFile, string(lockfile.Format(res.Lock)))
	later := strings.Fields(e.declares)
	for _, p := range pins {
		if e.declares == "" {
			later = append(later, p[:strings.Index(p, "@")])
		}
	}
	writeFiles(tb, dir, "subscriptions/all.yaml", newDeclaration(later))
	return &upgrade.Environment{Project: openProject(tb, filepath.Join(base, "cache"), dir), Title: name, Dir: name}
}

// newDeclaration returns the declarations for words: see environment.declares.
func newDeclaration(words []string) string {
	var out strings.Builder
	for _, w := range words {
		if w == "groups" {
			for _, name := range []string{"one", "two"} {
				fmt.Fprintf(&out, "---\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: %s, namespace: ops}\n", name)
			}
			continue
		}
		if name, version, ok := strings.Cut(w, "^"); ok {
			fmt.Fprintf(&out, "---\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: ops}\nspec: {name: %[1]s, channel: stable, source: test, sourceNamespace: olm, startingCSV: %[1]s.v%[2]s.0.0}\n", name, version)
			continue
		}
		name, more := w, ""
		if at := strings.IndexAny(w, "@<!"); at >= 0 {
			name = w[:at]
			switch w[at] {
			case '@':
				more = ", version: " + w[at+1:] + ".0.0"
			case '<':
				more = ", version: <" + w[at+1:] + ".0.0"
			case '!':
				more = ", hold: before the fair"
			}
		}
		fmt.Fprintf(&out, "---\napiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: ops}\nspec: {package: %[1]s%[2]s}\n", name, more)
	}
	return out.String()
}

func (e environment) catalog() string {
	var out strings.Builder
	entries, names := map[string][]string{}, []string{}
	for _, line := range strings.Split(strings.TrimSpace(e.bundles), "\n") {
		words := strings.Fields(line)
		name, version, _ := strings.Cut(words[0], "@")
		version, other := strings.CutSuffix(version, "*")
		digest := fmt.Sprintf("%063s", version)
		if digest += "0"; other {
			digest = digest[:63] + "f"
		}
		if entries[name] == nil {
			names = append(names, name)
		}
		replaces := ""
		if last := len(entries[name]); last > 0 {
			replaces = ", replaces: " + strings.TrimSuffix(strings.Fields(entries[name][last-1])[1], ",")
		}
		entries[name] = append(entries[name], fmt.Sprintf("name: %s.v%s.0.0%s", name, version, replaces))
		fmt.Fprintf(&out, "---\nschema: olm.bundle\npackage: %[1]s\nname: %[1]s.v%[2]s.0.0\nimage: registry.example.com/%[1]s@sha256:%[3]s\nproperties:\n- {type: olm.package, value: {packageName: %[1]s, version: %[2]s.0.0}}\n", name, version, digest)
		for _, need := range words[1:] {
			if min, ok := strings.CutPrefix(need, "k8s="); ok {
				fmt.Fprintf(&out, "- {type: olm.csv.metadata, value: {minKubeVersion: %s}}\n", min)
				continue
			}
			i := strings.IndexAny(need, "@=")
			bound := ">=" + need[i+1:] + ".0.0"
			if need[i] == '=' {
				bound = "=" + need[i+1:] + ".0.0"
			}
			fmt.Fprintf(&out, "- {type: olm.package.required, value: {packageName: %s, versionRange: '%s'}}\n", need[:i], bound)
		}
	}
	for _, name := range names {
		fmt.Fprintf(&out, "---\nschema: olm.package\nname: %[1]s\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: %[1]s\nname: stable\nentries:\n", name)
		for _, entry := range entries[name] {
			fmt.Fprintf(&out, "- {%s}\n", entry)
		}
	}
	return out.String()
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func writeFiles(tb fataler, dir, name, data string) {
	tb.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		tb.Fatalf("%v", err)
	}
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		tb.Fatalf("%v", err)
	}
}

func openProject(tb fataler, cache, dir string) *workspace.Project {
	tb.Helper()
	p, err := workspace.Open(workspace.Dir(dir, filepath.Dir(dir)), workspace.Env{
		Getenv: func(key string) string {
			if key == "XDG_CACHE_HOME" {
				return cache
			}
			return ""
		},
		Version: "test", Offline: true,
	})
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return p
}

// now returns the time of every observation.
func now() time.Time {
	return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
}

func defaultRule() *gate.Criteria {
	r := gate.DefaultCriteria()
	return &r
}

// newObservation returns the observations in the cluster of an environment. All pins except those in unhealthy
// are Ready.
func newObservation(tb fataler, e *upgrade.Environment, unhealthy ...string) []*health.Summary {
	tb.Helper()
	lock, err := e.NeedLock()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	var ops []string
	for _, p := range lock.Pins {
		state := "Ready"
		if slices.Contains(unhealthy, p.Package) {
			state = "Failed"
		}
		ops = append(ops, fmt.Sprintf(`{"namespace": %q, "package": %q, "version": %q, "bundleDigest": %q, "state": %q}`, p.Namespace, p.Package, p.Version, p.BundleDigest(), state))
	}
	out, err := health.Read("seen.json", []byte(fmt.Sprintf(`{"apiVersion": "quayside.dev/v1alpha1", "kind": "Observed", "environment": %q, "cluster": "default", "observedAt": "2026-11-22T11:00:00Z", "operators": [%s]}`, e.Title, strings.Join(ops, ","))))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return out
}

// formatReport formats the rows of a report as lines such as "a held gate".
func formatReport(s *upgrade.PromotionStepReport) []string {
	var out []string
	for _, r := range s.Operators {
		words := []string{strings.TrimPrefix(r.Operator, "ops/"), string(r.Outcome)}
		if r.Reason != "" {
			words = append(words, string(r.Reason))
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

const plainBundles = "a@1\na@2\nb@1\nb@2\nc@1\nc@2"

func TestPromotionRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to  environment
		only      []string
		unhealthy []string // nil: no gate
		want      []string
		lock      string // pins of the target environment; empty: unchanged
	}{
		"moves": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{plainBundles, "a@1 b@1", ""},
			want: []string{"a upgraded", "b upgraded"}, lock: "a@2 b@2",
		},
		"comes": {
			from: environment{plainBundles, "a@1", ""}, to: environment{plainBundles, "b@1", "a b"},
			want: []string{"a added", "b kept notInFrom"}, lock: "a@1 b@1",
		},
		"same": {
			from: environment{plainBundles, "a@2", ""}, to: environment{plainBundles, "a@2", ""},
			want: []string{"a unchanged"},
		},
		"declared here alone, and not pinned": {
			from: environment{plainBundles, "a@2", ""}, to: environment{plainBundles, "a@1", "a b"},
			want: []string{"a upgraded", "b kept notInFrom"}, lock: "a@2",
		},
		"older": {
			from: environment{plainBundles, "a@1 b@2", ""}, to: environment{plainBundles, "a@2 b@1", ""},
			want: []string{"a kept downgrade", "b upgraded"}, lock: "a@2 b@2",
		},
		"not declared": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{plainBundles, "a@1", ""},
			want: []string{"a upgraded", "b kept notDeclared"}, lock: "a@2",
		},
		"range and hold": {
			from: environment{plainBundles, "a@2 b@2 c@2", ""}, to: environment{plainBundles, "a@1 b@1 c@1", "a<2 b! c"},
			want: []string{"a kept range", "b kept hold", "c upgraded"}, lock: "a@1 b@1 c@2",
		},
		"catalog": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{"a@1\nb@1\nb@2", "a@1 b@1", ""},
			want: []string{"a kept catalog", "b upgraded"}, lock: "a@1 b@2",
		},
		"cluster": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{"a@1\na@2 k8s=1.35.0\nb@1\nb@2", "a@1 b@1", ""},
			want: []string{"a kept clusterVersion", "b upgraded"}, lock: "a@1 b@2",
		},
		"content": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{"a@1\na@2*\nb@1\nb@2", "a@1 b@1", ""},
			want: []string{"a kept content", "b upgraded"}, lock: "a@1 b@2",
		},
		"content of one that is needed": {
			from: environment{"a@1\na@2 b@2\nb@1\nb@2\nc@1\nc@2", "a@2 b@2 c@2", ""},
			to:   environment{"a@1\na@2 b@2\nb@1\nb@2*\nc@1\nc@2", "a@1 b@1 c@1", ""},
			want: []string{"a held dependency", "b kept content", "c upgraded"}, lock: "a@1 b@1 c@2",
		},
		"gate": {
			from: environment{plainBundles, "a@2 b@2 c@2", ""}, to: environment{plainBundles, "a@1 b@1", "a b c"}, unhealthy: []string{"a", "c"},
			want: []string{"a held gate", "b upgraded", "c held gate"}, lock: "a@1 b@2",
		},
		"gate of one that is needed": {
			from: environment{"a@1\na@2 b@2\nb@1\nb@2\nc@1\nc@2", "a@2 b@2 c@2", ""},
			to:   environment{"a@1\na@2 b@2\nb@1\nb@2\nc@1\nc@2", "a@1 b@1 c@1", ""}, unhealthy: []string{"b"},
			want: []string{"a held dependency", "b held gate", "c upgraded"}, lock: "a@1 b@1 c@2",
		},
		"gate of one that comes as a need": {
			from: environment{"a@1\na@2 b@2\nb@1\nb@2", "a@2", ""},
			to:   environment{"a@1\na@2 b@2\nb@1\nb@2", "a@1", ""}, unhealthy: []string{"b"},
			want: []string{"a held dependency", "b kept notDeclared"},
		},
		"named, with what it needs": {
			from: environment{"a@1\na@2 b@2\nb@1\nb@2\nc@1\nc@2", "a@2 b@2 c@2", ""},
			to:   environment{"a@1\na@2 b@2\nb@1\nb@2\nc@1\nc@2", "a@1 b@1 c@1", ""}, only: []string{"ops/a"},
			want: []string{"a upgraded", "b upgraded"}, lock: "a@2 b@2 c@1",
		},
		"conflict with one that stays": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{"a@1\na@2 c=2\nb@1\nb@2\nc@1\nc@2", "a@1 b@1 c@1", "a b c<2"},
			want: []string{"a kept conflict", "b upgraded", "c kept notInFrom"}, lock: "a@1 b@2 c@1",
		},
		"conflict of one that is new": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{"a@1\na@2 c=2\nb@1\nb@2\nc@1\nc@2", "b@1 c@1", "a b c<2"},
			want: []string{"a kept conflict", "b upgraded", "c kept notInFrom"}, lock: "b@2 c@1",
		},
		"new, in a namespace where nothing can be installed": {
			from: environment{plainBundles, "a@2", ""}, to: environment{plainBundles, "", "a groups"},
			want: []string{"a kept conflict"},
		},
		"new, and not what it is to start with": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{plainBundles, "b@1", "a^1 b"},
			want: []string{"a kept range", "b upgraded"}, lock: "b@2",
		},
		"new, and of no version that it may have": {
			from: environment{plainBundles, "a@2 b@2", ""}, to: environment{plainBundles, "b@1", "a<2 b"},
			want: []string{"a kept range", "b upgraded"}, lock: "b@2",
		},
		"new, needed, and of no version that it may have": {
			from: environment{"a@1\na@2\nb@1\nb@2 a@1", "a@2 b@2", ""}, to: environment{"a@1\na@2\nb@1\nb@2 a@1", "b@1", "a<2 b"},
			want: []string{"a kept range", "b kept conflict"},
		},
		"two that are new and do not go together": {
			from: environment{plainBundles, "a@2 b@2 c@2", ""}, to: environment{"a@1\na@2 b=1\nb@1\nb@2\nc@1\nc@2", "c@1", "a b c"},
			want: []string{"a kept conflict", "b added", "c upgraded"}, lock: "b@2 c@2",
		},
		"moving it would move one that is held": {
			from: environment{"a@1\na@2\nb@1 a=1\nb@2", "a@2 b@2", ""}, to: environment{"a@1\na@2\nb@1 a=1\nb@2", "a@1 b@1", ""}, unhealthy: []string{"b"},
			want: []string{"a kept conflict", "b held gate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			from, to := c.from.open(t, base, "dev"), c.to.open(t, base, "stage")
			opt := upgrade.PromotionOptions{Only: c.only, Now: now()}
			if c.unhealthy != nil {
				opt.Rule, opt.Observed = defaultRule(), newObservation(t, from, c.unhealthy...)
			}
			got, err := upgrade.PromotionStep{From: from, To: to}.Promote(context.Background(), opt)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, formatReport(got)); d != "" {
				t.Error(d)
			}
			lock := ""
			if got.Resolution != nil {
				lock = lockedVersions(got.Resolution.Lock)
			}
			if lock != c.lock {
				t.Errorf("lock: %s, want %s", lock, c.lock)
			}
		})
	}
}

// lockedVersions formats the pins of a lock like environment.pins.
func lockedVersions(lock *lockfile.File) string {
	var out []string
	for _, p := range lock.Pins {
		out = append(out, p.Package+"@"+strings.TrimSuffix(p.Version, ".0.0"))
	}
	return strings.Join(out, " ")
}
