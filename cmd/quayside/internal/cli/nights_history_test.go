package cli_test

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
)

// release is a version of a package, and the nights in which its catalog lists it.
type release struct {
	version     string
	from, until int // until is exclusive
}

// history contains the releases of some packages.
type history struct {
	packages []string
	releases map[string][]release // by package, in ascending order of versions
	nights   int                  // number of nights, followed by the night with the last release of every package
	mixed    bool                 // whether some packages are charts or releases of manifests
}

// last is the version that ends the history of every package.
const last = "9000.0.0"

// forever is the end of a release that is never withdrawn.
const forever = 1 << 30

// newHistory returns a random history.
func newHistory(r *rand.Rand, packages, nights int) *history {
	h := &history{releases: map[string][]release{}, nights: nights, mixed: true}
	for i := range packages {
		list := []release{{"1.0.0", 0, forever}}
		for night := 1; night < nights; night++ {
			newest := &list[len(list)-1]
			switch n := r.IntN(100); {
			case n < 20:
				list = append(list, release{fmt.Sprintf("1.%d.0", len(list)), night, forever})
			case n < 22: // the newest one is withdrawn
				newest.until = min(newest.until, night)
			case n < 26: // an old one is withdrawn
				old := &list[r.IntN(len(list))]
				old.until = min(old.until, night)
			}
		}
		h.add(fmt.Sprintf("p%02d", i), list)
	}
	return h
}

// readHistory reads the history of the packages of the corpus with the most events in the last
// nights of history.tsv.
func readHistory(t *testing.T, corpus string, packages, nights int) *history {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus, "catalogs/history.tsv"))
	check(t, err)
	defer f.Close()
	var rows [][]string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rows = append(rows, strings.Split(lines.Text(), "\t"))
	}
	day := func(row []string) int {
		at, err := time.Parse(time.DateOnly, row[0])
		check(t, err)
		return int(at.Unix() / 86400)
	}
	start := day(rows[len(rows)-1]) - nights + 1
	events, lists := map[string]int{}, map[string][]release{}
	for _, row := range rows {
		pkg, night := row[2], max(day(row)-start, 0)
		v, err := semver.Parse(strings.TrimPrefix(row[3], "v"))
		if err != nil || len(v.Build) > 0 {
			continue
		}
		i := slices.IndexFunc(lists[pkg], func(x release) bool { return x.version == v.String() })
		switch {
		case i >= 0 && row[1] == "-":
			lists[pkg][i].until = night
		case i >= 0:
			lists[pkg][i].until = forever // published again
		case row[1] == "+":
			lists[pkg] = append(lists[pkg], release{v.String(), night, forever})
		}
		if night > 0 {
			events[pkg]++
		}
	}
	h := &history{releases: map[string][]release{}, nights: nights, mixed: true}
	var names []string
	for pkg, list := range lists {
		list = slices.DeleteFunc(list, func(x release) bool { return x.until == 0 })
		if slices.ContainsFunc(list, func(x release) bool { return x.from == 0 }) && semverOf(list[len(list)-1].version).LT(semverOf(last)) {
			names, lists[pkg] = append(names, pkg), list
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(events[b]-events[a], strings.Compare(a, b)) })
	for _, pkg := range names[:min(packages, len(names))] {
		h.add(pkg, lists[pkg])
	}
	return h
}

// add adds a package, whose history ends with the version last.
func (h *history) add(pkg string, list []release) {
	slices.SortFunc(list, func(a, b release) int { return semverOf(a.version).Compare(semverOf(b.version)) })
	h.packages = append(h.packages, pkg)
	h.releases[pkg] = append(list, release{last, h.nights, forever})
}

func semverOf(version string) semver.Version { return semver.MustParse(version) }

// channelEntry is an entry of a package's channel on a night.
type channelEntry struct {
	version, replaces string
	skips             []string
	below             bool // its skipRange includes every lower version
}

// entries returns the channel entries of a package on a night. It omits the version in the argument
// dropped. Every version of the history below the highest entry has an edge to an entry.
func (h *history) entries(pkg string, night int, dropped string) []channelEntry {
	var out []channelEntry
	var skipped []string
	for _, x := range h.releases[pkg] {
		if night < x.from || night >= x.until || x.version == dropped {
			skipped = append(skipped, x.version)
			continue
		}
		e := channelEntry{version: x.version, skips: skipped, below: slices.Index(h.packages, pkg)%4 == 1 || h.formatOf(pkg) != "bundles"}
		if len(out) > 0 {
			e.replaces = out[len(out)-1].version
		}
		out, skipped = append(out, e), nil
	}
	return out
}

// hasEdgeFrom reports whether a version can be upgraded to e.
func (e channelEntry) hasEdgeFrom(version string) bool {
	return e.replaces == version || slices.Contains(e.skips, version) || e.below && semverOf(version).LT(semverOf(e.version))
}

// formatOf returns the format of a package. In a mixed history, a quarter of the packages are "charts" and
// a quarter "releases", unless they have pre-releases. All other packages are "bundles".
func (h *history) formatOf(pkg string) string {
	i := slices.Index(h.packages, pkg) % 4
	if !h.mixed || i > 1 || slices.ContainsFunc(h.releases[pkg], func(x release) bool { return strings.Contains(x.version, "-") }) {
		return "bundles"
	}
	return []string{"charts", "releases"}[i]
}

// catalogOf returns the catalog that has a package.
func (h *history) catalogOf(pkg string) string {
	if format := h.formatOf(pkg); format != "bundles" {
		return format
	}
	return []string{"one", "two"}[slices.Index(h.packages, pkg)%2]
}

// namespaceOf returns the namespace of a package. A package and its dependency have the same namespace.
func (h *history) namespaceOf(pkg string) string {
	return "ns-" + h.packages[h.unitOf(pkg)]
}

// unitOf returns the index of a package's dependency or, without a dependency, the index of the package itself.
func (h *history) unitOf(pkg string) int {
	i := slices.Index(h.packages, pkg)
	if i%4 == 3 {
		return i - 1
	}
	return i
}

func (h *history) operator(pkg string) string { return h.namespaceOf(pkg) + "/" + pkg }

// isCoupled reports whether a package requires another package, or another package requires it.
func (h *history) isCoupled(pkg string) bool {
	i := slices.Index(h.packages, pkg)
	return i%4 == 3 || i%4 == 2 && i+1 < len(h.packages)
}

// requirement returns the package that a release requires, and the lowest permitted version. It returns "" for none.
func (h *history) requirement(pkg, version string) (other, lowest string) {
	list := h.releases[pkg]
	i := slices.IndexFunc(list, func(x release) bool { return x.version == version })
	if h.unitOf(pkg) == slices.Index(h.packages, pkg) || list[i].from == 0 || i%2 == 0 {
		return "", ""
	}
	other = h.packages[h.unitOf(pkg)]
	of := h.entries(other, list[i].from, "")
	if len(of) == 0 {
		return "", ""
	}
	return other, of[len(of)-1].version
}

// catalog returns the catalog JSON of a package with the given entries. The bundles of the versions
// in the set empty have no content, but only an image that cannot be fetched.
func (h *history) catalog(pkg string, entries []channelEntry, channel string, empty map[string]bool) string {
	var b strings.Builder
	put := func(v any) {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(append(data, '\n'))
	}
	type m = map[string]any
	name := func(version string) string { return pkg + ".v" + version }
	put(m{"schema": "olm.package", "name": pkg, "defaultChannel": channel})
	var list []m
	for _, e := range entries {
		one := m{"name": name(e.version)}
		if e.replaces != "" {
			one["replaces"] = name(e.replaces)
		}
		var skips []string
		for _, v := range e.skips {
			skips = append(skips, name(v))
		}
		if len(skips) > 0 {
			one["skips"] = skips
		}
		if e.below {
			one["skipRange"] = "<" + e.version
		}
		list = append(list, one)
	}
	put(m{"schema": "olm.channel", "package": pkg, "name": channel, "entries": list})
	for _, e := range entries {
		bundle := m{"schema": "olm.bundle", "package": pkg, "name": name(e.version), "relatedImages": []m{{"name": "", "image": "quay.io/example/" + pkg + ":" + e.version}}}
		properties := []m{{"type": "olm.package", "value": m{"packageName": pkg, "version": e.version}}, {"type": "olm.gvk", "value": m{"group": pkg + ".io", "version": "v1", "kind": "Thing"}}}
		if other, lowest := h.requirement(pkg, e.version); other != "" {
			properties = append(properties, m{"type": "olm.package.required", "value": m{"packageName": other, "versionRange": ">=" + lowest}})
		}
		if empty[e.version] {
			bundle["image"] = "registry.example.com/" + pkg + "@sha256:" + strings.Repeat("0", 64)
		} else {
			for _, object := range manifests(pkg, e.version) {
				properties = append(properties, m{"type": "olm.bundle.object", "value": m{"data": base64.StdEncoding.EncodeToString([]byte(object))}})
			}
		}
		bundle["properties"] = properties
		put(bundle)
	}
	return b.String()
}

// contentFiles returns the catalog files of a version of a chart or a release, by path. The content
// of the version in the argument empty cannot be rendered.
func (h *history) contentFiles(pkg, version, empty string) map[string]string {
	objects := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'quay.io/example/%[1]s:%[2]s'}]}}}
---
%[3]s`, pkg, version, manifests(pkg, version)[1])
	if h.formatOf(pkg) == "releases" {
		if version == empty {
			objects += "---\n{"
		}
		return map[string]string{"releases/" + pkg + "/" + version + "/objects.yaml": objects}
	}
	dir := "charts/" + pkg + "-" + version + "/"
	if version == empty {
		objects += "---\n{{ fail \"empty\" }}\n"
	}
	return map[string]string{dir + "Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", pkg, version), dir + "templates/objects.yaml": objects}
}

// manifests returns the ClusterServiceVersion and the CustomResourceDefinition of a release.
func manifests(pkg, version string) []string {
	return []string{fmt.Sprintf(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s.v%[2]s}
spec:
  version: %[2]s
  minKubeVersion: 1.19.0
  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: true}, {type: AllNamespaces, supported: true}]
  customresourcedefinitions: {owned: [{name: things.%[1]s.io, kind: Thing, version: v1}]}
  install:
    strategy: deployment
    spec:
      clusterPermissions: [{serviceAccountName: %[1]s, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}]
      deployments: [{name: %[1]s, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: %[1]s, containers: [{name: c, image: 'quay.io/example/%[1]s:%[2]s'}]}}}}]
`, pkg, version), fmt.Sprintf(`kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: things.%[1]s.io}
spec: {group: %[1]s.io, scope: Namespaced, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: 'of %[2]s'}}}]}
`, pkg, version)}
}
