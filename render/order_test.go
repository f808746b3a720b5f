package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// TestOrder checks the order of operators. A required operator is before the operator that requires it, unless
// both are in one cycle. The order has no cycles.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := strings.Split("abcdefgh", "")[:rapid.IntRange(1, 8).Draw(r, "operators")]
		needs := map[string][]string{}
		for _, name := range names {
			needs[name] = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, min(3, len(names)), rapid.ID).Draw(r, name)
		}
		o := newOrder(needs)
		leads := func(from, to string) bool { return reachableFrom(needs, from)[to] }
		for _, a := range names {
			longest := 0
			for _, b := range names {
				if want := leads(a, b) && !leads(b, a); o.before[a][b] != want {
					r.Errorf("%s before %s: %v, want %v", b, a, o.before[a][b], want)
				}
				if o.before[a][b] {
					longest = max(longest, o.level[b]+1)
				}
				if leads(a, b) && leads(b, a) && o.level[a] != o.level[b] {
					r.Errorf("%s and %s need each other, but have levels %d and %d", a, b, o.level[a], o.level[b])
				}
			}
			if o.level[a] != longest {
				r.Errorf("%s has level %d, after a chain of %d", a, o.level[a], longest)
			}
		}
	})
}

// TestOperatorOrder renders operators with requirements (also in cycles), with custom resources of each other's
// APIs, with shared objects and with certificates. No sync wave may wait for an object that becomes healthy only
// after a later wave.
func TestOperatorOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := strings.Split("abcde", "")
		bundles, needs, has := map[string]fstest.MapFS{}, map[string][]string{}, map[string][]string{}
		some := func(label string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(r, label)
		}
		for _, name := range names {
			files := []string{"{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: all}, value: 1}"}
			has[name] = some(name + " has objects of")
			for _, of := range has[name] {
				files = append(files, fmt.Sprintf("{kind: Thing, apiVersion: %s.io/v1, metadata: {name: of-%s}}", of, of))
			}
			for _, on := range some(name + " needs") {
				needs[name+"/"+name] = append(needs[name+"/"+name], on+"/"+on)
			}
			bundles[name+"/"+name] = newBundle(name, "1.0.0", "v1", files...)
		}
		bundles["ops/trust"] = newIssuerBundles()["ops/trust"]
		res, err := renderRequiring(bundles, needs, asOneUnit(engineOptions(profile.ArgoCD)))
		if err != nil {
			r.Fatal(err)
		}
		runs, all := map[string]int{}, map[string][]int{} // runs: wave of an operator's Deployment; all: waves of its objects
		objects := map[string]map[string]int{}            // operator → provider of the API → wave
		for _, o := range res.Objects {
			wave, err := strconv.Atoi(k8s.Text(o.Object, "metadata", "annotations", "argocd.argoproj.io/sync-wave"))
			if err != nil {
				r.Fatal(err)
			}
			owner := k8s.Text(o.Object, "metadata", "labels", k8s.LabelPackage)
			switch {
			case k8s.IsCRD(o.Object), o.Object.Is("", "Namespace"):
				continue
			case o.Object.Kind() == "Deployment":
				runs[owner] = wave
			case o.Object.Kind() == "PriorityClass":
				all["shared"] = append(all["shared"], wave)
				continue
			case o.Object.Kind() == "Thing":
				if objects[owner] == nil {
					objects[owner] = map[string]int{}
				}
				objects[owner][strings.TrimSuffix(o.Object.Group(), ".io")] = wave
				continue
			}
			all[owner] = append(all[owner], wave)
		}
		order := newOrder(func() map[string][]string {
			out := map[string][]string{}
			for _, name := range names {
				out[name] = nil
				for _, on := range needs[name+"/"+name] {
					out[name] = append(out[name], on[:1])
				}
			}
			return out
		}())
		for _, name := range names {
			for before := range order.before[name] {
				if slices.Min(all[name]) <= runs[before] {
					r.Errorf("%s begins in wave %d, but depends on %s, which runs in wave %d", name, slices.Min(all[name]), before, runs[before])
				}
			}
			if runs["trust"] >= slices.Min(all[name]) {
				r.Errorf("%s begins in wave %d, but certificates are issued in wave %d", name, slices.Min(all[name]), runs["trust"])
			}
			if slices.Max(all["shared"]) > runs[name] {
				r.Errorf("%s runs in wave %d, but its shared objects are applied in wave %d", name, runs[name], slices.Max(all["shared"]))
			}
			for of, wave := range objects[name] {
				switch {
				case wave < runs[of]:
					r.Errorf("%s has an object of %s in wave %d, but %[2]s runs only in wave %[4]d", name, of, wave, runs[of])
				case order.before[name][of] && wave != runs[name]:
					r.Errorf("%s has an object of %s in wave %d, not in wave %d of its Deployment", name, of, wave, runs[name])
				}
			}
		}
	})
}
