package upgrade_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// drawnPlatform describes operators p0, p1, … Each has one upgrade path with three versions.
type drawnPlatform struct {
	maxOpenShift [][3]int         // maximum minor version of OpenShift 4, by operator and version
	needs        [][3]map[int]int // minimum version of each required operator, by operator and version
}

func drawPlatform(r *rand.Rand) drawnPlatform {
	n := 2 + r.IntN(3)
	d := drawnPlatform{make([][3]int, n), make([][3]map[int]int, n)}
	for i := range n {
		for v := range 3 {
			d.maxOpenShift[i][v] = 20 + r.IntN(2)
			if v == 2 && r.IntN(4) > 0 {
				d.maxOpenShift[i][v] = 21
			}
			d.needs[i][v] = map[int]int{}
			if other := r.IntN(n); other != i && v > 0 && r.IntN(2) == 0 {
				d.needs[i][v][other] = 1 + r.IntN(2)
			}
		}
	}
	return d
}

// met reports whether all requirements are met. at contains the versions, by operator.
func (d drawnPlatform) met(at []int) bool {
	for i, v := range at {
		for other, least := range d.needs[i][v] {
			if at[other] < least {
				return false
			}
		}
	}
	return true
}

// firsts returns, for each operator, the first supported version that can be reached, or -1 if there is none.
// Each step upgrades some operators by one version. After each step, all requirements must be met.
func (d drawnPlatform) firsts() []int {
	begin := make([]int, len(d.maxOpenShift))
	out := slices.Repeat([]int{-1}, len(begin))
	queue, seen := [][]int{begin}, map[string]bool{fmt.Sprint(begin): true}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for i, v := range at {
			if d.maxOpenShift[i][v] >= 21 && (out[i] < 0 || v < out[i]) {
				out[i] = v
			}
		}
		for step := 1; step < 1<<len(at); step++ {
			next := slices.Clone(at)
			for i := range next {
				next[i] += step >> i & 1
			}
			if slices.Max(next) < 3 && d.met(next) && !seen[fmt.Sprint(next)] {
				seen[fmt.Sprint(next)] = true
				queue = append(queue, next)
			}
		}
	}
	return out
}

// write writes a workspace with every operator at its first version, and returns its directory. The catalog has
// the format that is parsed fastest. It is outside of the workspace, because each check would otherwise search
// its bundles for custom resources.
func (d drawnPlatform) write(t *testing.T) string {
	catalog, dir := t.TempDir(), t.TempDir()
	outside, err := filepath.Rel(dir, catalog)
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, "quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  declarations: [subscriptions]
  catalogs: [{name: c, namespace: olm, source: "bundles:%s"}]
  kubernetesVersion: "1.34"
  openshiftVersion: "4.20"
`, filepath.ToSlash(outside)))
	writeFiles(t, dir, "subscriptions/group.yaml", "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: g, namespace: ops}\nspec: {}\n")
	for i := range d.maxOpenShift {
		pkg := fmt.Sprintf("p%d", i)
		writeFiles(t, dir, "subscriptions/"+pkg+".yaml", fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: %[1]s, namespace: ops}
spec: {name: %[1]s, channel: stable, source: c, sourceNamespace: olm, startingCSV: %[1]s.v1.0.0}
`, pkg))
		for v := range 3 {
			replaces := ""
			if v > 0 {
				replaces = fmt.Sprintf("%s.v%d.0.0", pkg, v)
			}
			deps := "dependencies:"
			for other, least := range d.needs[i][v] {
				deps += fmt.Sprintf("\n- {type: olm.package, value: {packageName: p%d, version: \">=%d.0.0\"}}", other, least+1)
			}
			if len(d.needs[i][v]) > 0 {
				writeFiles(t, catalog, path.Join(pkg, fmt.Sprintf("%d.0.0", v+1), "metadata/dependencies.yaml"), deps+"\n")
			}
			writeBundle(t, catalog, pkg, fmt.Sprintf("%d.0.0", v+1), replaces, fmt.Sprintf(`[{"type": "olm.maxOpenShiftVersion", "value": "4.%d"}]`, d.maxOpenShift[i][v]))
		}
	}
	return dir
}

// writeBundle writes a bundle in channel stable with one deployment. properties holds the properties of its
// ClusterServiceVersion, in JSON.
func writeBundle(t *testing.T, dir, pkg, version, replaces, properties string) {
	at := path.Join(pkg, version)
	if replaces != "" {
		replaces = "  replaces: " + replaces + "\n"
	}
	writeFiles(t, dir, path.Join(at, "metadata/annotations.yaml"), fmt.Sprintf(`annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %s
  operators.operatorframework.io.bundle.channels.v1: stable
`, pkg))
	writeFiles(t, dir, path.Join(at, "manifests/csv.yaml"), fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: %[1]s.v%[2]s
  annotations:
    olm.properties: '%[3]s'
spec:
  version: %[2]s
%[4]s  installModes:
  - type: OwnNamespace
    supported: true
  - type: AllNamespaces
    supported: true
  install:
    strategy: deployment
    spec:
      deployments:
      - name: %[1]s
        spec:
          replicas: 1
          selector:
            matchLabels:
              app: %[1]s
          template:
            metadata:
              labels:
                app: %[1]s
            spec:
              containers:
              - name: m
                image: "example.com/%[1]s@sha256:%[5]s"
`, pkg, version, properties, replaces, strings.Repeat("0", 64)))
}

// resolveProject resolves a workspace and writes its lock.
func resolveProject(t *testing.T, dir, cache string, change func(*resolve.Options)) {
	t.Helper()
	p := openProject(t, cache, dir)
	opt := p.ResolveOptions()
	if change != nil {
		change(&opt)
	}
	in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: opt})
	if err != nil {
		t.Fatal(err)
	}
	got, err := workspace.Resolve(context.Background(), in)
	if err != nil || got.Failed != nil {
		t.Fatal(err, got.Failed)
	}
	writeFiles(t, dir, workspace.LockFile, string(lockfile.Format(got.Lock)))
}

// parseCommand returns the operators and versions in a printed command.
func parseCommand(t *testing.T, command string) (out []resolve.Target) {
	t.Helper()
	words, ok := strings.CutPrefix(command, "quayside upgrade --hops all ")
	for word := range strings.FieldsSeq(words) {
		at, version, versioned := strings.Cut(word, "@")
		namespace, pkg, named := strings.Cut(at, "/")
		ok = ok && versioned && named
		out = append(out, resolve.Target{Namespace: namespace, Package: pkg, Version: version})
	}
	if !ok {
		t.Fatalf("no command: %q", command)
	}
	return out
}

// TestCheckPlatformFindsFirst draws workspaces. It compares the upgrades that CheckPlatform proposes with the
// results of firsts. The printed command must make these upgrades. CheckPlatform does not find a version that
// can be reached only after several upgrades of another operator.
func TestCheckPlatformFindsFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	target := upgrade.Platform{OpenShift: "4.21"}
	found, none, supported, missed, commands := 0, 0, 0, 0, 0
	draws := 30
	if testing.Short() {
		draws = 15
	}
	for n := range draws {
		d := drawPlatform(r)
		dir, cache := d.write(t), t.TempDir()
		resolveProject(t, dir, cache, nil)
		report, err := upgrade.CheckPlatform(context.Background(), openProject(t, cache, dir), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range report.Upgrades {
			got[s.Operator] = s.To
		}
		want := map[string]string{}
		for i, v := range d.firsts() {
			operator := fmt.Sprintf("ops/p%d", i)
			switch {
			case v == 0:
				supported++
				continue
			case v < 0:
				none++
			case got[operator] == "":
				missed++
			default:
				want[operator] = fmt.Sprintf("%d.0.0", v+1)
				found++
				continue
			}
			if !strings.Contains(strings.Join(report.Why, "\n"), operator+": ") {
				t.Errorf("%d: no reason for %s: %q", n, operator, report.Why)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: -want +got\n%s%+v", n, diff, d)
		}
		if report.Command == "" {
			continue
		}
		commands++
		resolveProject(t, dir, cache, func(opt *resolve.Options) { opt.Named, opt.Hops = parseCommand(t, report.Command), -1 })
		after, err := upgrade.CheckPlatform(context.Background(), openProject(t, cache, dir), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range after.Operators {
			if to := want[o.Operator]; to != "" && o.Version < to {
				t.Errorf("%d: after %s: %s at %s", n, report.Command, o.Operator, o.Version)
			}
		}
	}
	t.Logf("%d operators with upgrades, %d without, %d supported, %d missed, %d commands", found, none, supported, missed, commands)
	if found < draws/3 || none == 0 || missed > found/2 || commands < draws/10 {
		t.Errorf("too little was drawn")
	}
}
