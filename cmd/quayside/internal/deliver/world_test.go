package deliver_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// world is a random workspace with its catalogs.
type world struct {
	packages []*drawnPackage
	settings map[string]string // quayside.yaml, overlays
	declared map[string]string // declarations, by file
	spare    []string          // files of further declarations, which change may add
	replaces string            // package that can replace p0
	apart    bool              // whether the operators have nothing in common
}

// drawnPackage is a package with its bundles, and the versions in the catalog on each day.
type drawnPackage struct {
	name, catalog string
	bundles       []map[string]string // files of each version, from 1.0.0 on
	first, last   []int               // first and last version in the catalog, by day
}

const nights = 4 // maximum

// drawWorld draws packages. Their first versions are installed, and have no requirements. Later versions may
// require each other, even in cycles, and may share objects. An additional package provides the same CRD as the
// first package, and can therefore replace it.
func drawWorld(t *rapid.T) *world {
	w := &world{declared: map[string]string{}, apart: rapid.IntRange(0, 3).Draw(t, "apart") == 3}
	n := rapid.SampledFrom([]int{6, 8, 4, 7, 5, 3}).Draw(t, "packages")
	for i := range n {
		w.packages = append(w.packages, w.drawPack(t, i, n))
	}
	follower := w.drawPack(t, n, n)
	for _, files := range follower.bundles {
		files["manifests/crd-followed.yaml"] = definition("p0", 0)
		files["manifests/csv.yaml"] = strings.Replace(files["manifests/csv.yaml"], "owned: [", "owned: [{name: things.p0.io, kind: P0, version: v1}, ", 1)
	}
	w.packages = append(w.packages, follower)
	for _, p := range w.packages[:n] {
		installs := rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "installs")
		if w.apart {
			installs = 1
		}
		for i, ns := range rapid.Permutation([]string{"n0", "n1", "n2"}).Draw(t, "namespaces")[:installs] {
			file := declarationFile(ns, p.name)
			if p.name == "p0" && i == 0 || rapid.IntRange(0, 3).Draw(t, "left out") > 0 {
				w.declared[file] = declaration(ns, p.name, "")
			} else {
				w.spare = append(w.spare, file)
			}
		}
	}
	w.replaces = follower.name
	if rapid.Bool().Draw(t, "declared Namespace") {
		w.declared["subscriptions/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n0, labels: {team: a}}\n"
	}
	w.settings = drawSettings(t)
	return w
}

func declarationFile(ns, pkg string) string { return "subscriptions/" + ns + "." + pkg + ".yaml" }

// operatorOf returns the namespace and the package from the file name of a declaration.
func operatorOf(file string) (ns, pkg string) {
	ns, pkg, _ = strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file, "subscriptions/"), ".yaml"), ".")
	return ns, pkg
}

func declaration(ns, pkg, replaces string) string {
	text := fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[2]s, namespace: %[1]s}\nspec:\n  package: %[2]s\n  watchNamespaces: [%[1]s]\n", ns, pkg)
	if replaces != "" {
		text += "  replaces: " + replaces + "\n"
	}
	return text
}

// drawPack draws package i of n.
func (w *world) drawPack(t *rapid.T, i, n int) *drawnPackage {
	p := &drawnPackage{name: fmt.Sprintf("p%d", i), catalog: fmt.Sprintf("c%d", i%2)}
	versions := rapid.SampledFrom([]int{4, 5, 3, 2, 1}).Draw(t, "versions")
	revision := 0
	for v := 1; v <= versions; v++ {
		if i > 0 && i < n && rapid.IntRange(0, 2).Draw(t, "other definition") == 0 {
			revision++
		}
		p.bundles = append(p.bundles, w.drawBundle(t, p.name, v, n, revision))
	}
	first, last := 1, 1
	for day := range nights {
		if day > 0 {
			last = min(versions, last+rapid.SampledFrom([]int{1, 1, 2, 0}).Draw(t, "released"))
		}
		if rapid.IntRange(0, 5).Draw(t, "dropped") == 0 {
			first = min(first+1, last)
		}
		p.first, p.last = append(p.first, first), append(p.last, last)
	}
	p.first[0] = 1
	return p
}

// drawBundle draws version v of a package.
func (w *world) drawBundle(t *rapid.T, pkg string, v, n, revision int) map[string]string {
	var meta strings.Builder
	if template := rapid.SampledFrom([]string{"", "", "restricted", "privileged"}).Draw(t, "template"); template != "" && !w.apart {
		fmt.Fprintf(&meta, `, operatorframework.io/suggested-namespace-template: '{"kind": "Namespace", "metadata": {"labels": {"level": %q}}}'`, template)
	}
	if rapid.Bool().Draw(t, "skips") {
		fmt.Fprintf(&meta, `, olm.skipRange: '<%d.0.0'`, v)
	}
	replaces := ""
	if v > 1 {
		replaces = fmt.Sprintf("  replaces: %s.v%d.0.0\n", pkg, v-1)
	}
	files := map[string]string{
		"metadata/annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: " + pkg + ", operators.operatorframework.io.bundle.channels.v1: stable, operators.operatorframework.io.bundle.channel.default.v1: stable}\n",
		"manifests/csv.yaml": fmt.Sprintf(`kind: ClusterServiceVersion
apiVersion: operators.coreos.com/v1alpha1
metadata: {name: %[1]s.v%[2]d.0.0, annotations: {a: b%[3]s}}
spec:
  version: %[2]d.0.0
%[4]s  installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}, {type: MultiNamespace, supported: true}, {type: AllNamespaces, supported: true}]
  customresourcedefinitions: {owned: [{name: things.%[1]s.io, kind: %[5]s, version: v1}]}
  install:
    strategy: deployment
    spec:
      clusterPermissions: [{serviceAccountName: %[1]s, rules: [{apiGroups: [""], resources: [nodes], verbs: [%[6]s]}]}]
      deployments: [{name: %[1]s, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: %[1]s, containers: [{name: c, image: 'quay.io/example/%[1]s:%[2]d'}]}}}}]
`, pkg, v, meta.String(), replaces, strings.ToUpper(pkg), []string{"get", "list"}[v%2]),
		"manifests/crd.yaml": definition(pkg, revision),
	}
	w.drawObjects(t, files, pkg, v)
	if needs := drawNeeds(t, v, n); needs != "" && !w.apart {
		files["metadata/dependencies.yaml"] = "dependencies:\n" + needs
	}
	return files
}

func definition(pkg string, revision int) string {
	return fmt.Sprintf(`kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
metadata: {name: things.%[1]s.io}
spec: {group: %[1]s.io, scope: Namespaced, names: {kind: %[2]s, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: 'revision %[3]d'}}}]}
`, pkg, strings.ToUpper(pkg), revision)
}

// drawObjects adds some of these objects to files. Two objects are equal in every package. One is shared by
// several installations of a package. One has the version in its name, so that Git treats its file as renamed.
func (w *world) drawObjects(t *rapid.T, files map[string]string, pkg string, v int) {
	for i, text := range []string{
		"{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: all}, value: 1}",
		"{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: most}, value: 2}",
		fmt.Sprintf("{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b-%[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: %[1]s, namespace: x}]}", pkg),
		fmt.Sprintf("{kind: ConfigMap, apiVersion: v1, metadata: {name: settings-%[1]s-v%[2]d}, data: {text: %[3]q}}", pkg, v, strings.Repeat("the same line of every version\n", 10)),
	} {
		if rapid.IntRange(0, 3).Draw(t, "object") == 0 && (i > 1 || !w.apart) {
			files[fmt.Sprintf("manifests/x%d.yaml", i)] = text
		}
	}
}

// drawNeeds draws the requirements of version v on n packages.
func drawNeeds(t *rapid.T, v, n int) string {
	if v == 1 || rapid.IntRange(0, 2).Draw(t, "needs") > 0 {
		return ""
	}
	other := fmt.Sprintf("p%d", rapid.IntRange(0, n-1).Draw(t, "needed"))
	if rapid.Bool().Draw(t, "API") {
		return fmt.Sprintf("- {type: olm.gvk, value: {group: %s.io, kind: %s, version: v1}}\n", other, strings.ToUpper(other))
	}
	op := rapid.SampledFrom([]string{"<", ">=", ">=", ">="}).Draw(t, "op")
	return fmt.Sprintf("- {type: olm.package, value: {packageName: %s, version: '%s%d.0.0'}}\n", other, op, rapid.IntRange(1, 3).Draw(t, "version"))
}

// drawSettings draws the profile, the clusters and the overlays.
func drawSettings(t *rapid.T) map[string]string {
	files := map[string]string{}
	var b bytes.Buffer
	profile := rapid.SampledFrom([]string{"argocd", "flux", "plain"}).Draw(t, "profile")
	fmt.Fprintf(&b, "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: env}\nspec:\n  profile: %s\n", profile)
	b.WriteString("  catalogs: [{name: c0, namespace: olm, source: 'bundles:catalogs/c0'}, {name: c1, namespace: olm, source: 'bundles:catalogs/c1'}]\n")
	at := "kubernetesVersion: '1.34' # of %s"
	if profile != "plain" {
		b.WriteString("  gitops:\n    repoURL: https://git.example.com/fleet.git\n    sourceRef: {name: fleet}\n")
		fmt.Fprintf(&b, "    granularity: %s\n", rapid.SampledFrom([]string{"operator", "operator", "cluster"}).Draw(t, "granularity"))
		if profile == "argocd" && rapid.IntRange(0, 3).Draw(t, "registered") == 0 {
			b.WriteString("    clusters: {selector: {matchLabels: {a: b}}}\n")
		} else {
			at = map[string]string{"argocd": "server: 'https://%s'", "flux": "kubeConfig: %s"}[profile]
			fmt.Fprintf(&b, "    inputs: %v\n", rapid.Bool().Draw(t, "inputs"))
		}
	}
	if rapid.Bool().Draw(t, "reporter") {
		b.WriteString("  reporter: {enabled: true, image: 'registry.example.com/report:1'}\n")
	}
	fmt.Fprintf(&b, "  healthChecks: %v\n  clusters:\n", rapid.Bool().Draw(t, "health checks"))
	for i := range rapid.IntRange(1, 3).Draw(t, "clusters") {
		name := fmt.Sprintf("k%d", i)
		fmt.Fprintf(&b, "  - name: %s\n    "+at+"\n", name, name)
		if i == 0 {
			continue
		}
		fmt.Fprintf(&b, "    operators: %s\n", rapid.SampledFrom([]string{"['*']", "['n0/*', 'n1/*']", "['*/p0', '*/p2']"}).Draw(t, "operators"))
		b.WriteString(rapid.SampledFrom([]string{"", "    config: {env: [{name: A, value: b}]}\n"}).Draw(t, "config"))
		if rapid.IntRange(0, 2).Draw(t, "overlay") == 0 {
			files["overlays/"+name+"/kustomization.yaml"] = component
		}
		if rapid.IntRange(0, 2).Draw(t, "own objects") == 0 {
			files["overlays/"+name+"/resources/kustomization.yaml"] = "resources: []\n"
		}
	}
	files["quayside.yaml"] = b.String()
	return files
}

const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {a: b}}]\n"

// catalogs returns the files of the catalogs on a day. It omits the package named in the argument drop.
func (w *world) catalogs(day int, drop string) map[string]string {
	out := map[string]string{}
	for _, p := range w.packages {
		if p.name == drop {
			continue
		}
		for v := p.first[day]; v <= p.last[day]; v++ {
			for name, text := range p.bundles[v-1] {
				out[fmt.Sprintf("catalogs/%s/%s/%d/%s", p.catalog, p.name, v, name)] = text
			}
		}
	}
	return out
}

// change returns the declarations after a random change.
func (w *world) change(t *rapid.T) map[string]string {
	next := maps.Clone(w.declared)
	declared := slices.DeleteFunc(slices.Sorted(maps.Keys(next)), func(file string) bool { return file == "subscriptions/namespace.yaml" })
	switch rapid.SampledFrom([]string{"add", "remove", "follow"}).Draw(t, "change") {
	case "add":
		if len(w.spare) > 0 {
			file := rapid.SampledFrom(w.spare).Draw(t, "added")
			ns, pkg := operatorOf(file)
			next[file] = declaration(ns, pkg, "")
		}
	case "remove":
		if len(declared) > 1 {
			delete(next, rapid.SampledFrom(declared).Draw(t, "removed"))
		}
	case "follow":
		for _, file := range declared {
			if ns, pkg := operatorOf(file); pkg == "p0" {
				delete(next, file)
				next[declarationFile(ns, w.replaces)] = declaration(ns, w.replaces, ns+"/p0")
			}
		}
	}
	return next
}
