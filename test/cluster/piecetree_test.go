package cluster_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pieceState declares an environment: its clusters, and the operators that each
// of them gets.
type pieceState struct {
	environment string
	whole       bool // granularity cluster: one engine object for all operators
	clusters    []pieceCluster
	operators   []tinyOperator
	leaving     []string   // removed operators that are still to be uninstalled
	circles     [][]string // operators that require each other, and are one piece
	bare        bool       // no digest files
}

// pieceCluster is one of the clusters.
type pieceCluster struct{ name, server, kubeConfig string }

// tinyOperator is an operator of a ConfigMap and a Deployment. All of its objects
// are labelled with its version.
type tinyOperator struct {
	namespace, name, version string

	idle    bool     // it has no Deployment
	api     bool     // it has a CRD
	uses    string   // the operator whose kind its custom resource is of, and which it requires
	shared  bool     // it has the object that another operator had
	sharing bool     // it has the CRD that another operator had
	fault   string   // "unhealthy", "CRD refused" or "object refused"
	other   []string // operators that it requires beside
}

// key returns "<namespace>.<name>".
func (o tinyOperator) key() string { return o.namespace + "." + o.name }

// crds returns the operator's CRDs, each by its file's name.
func (o tinyOperator) crds() map[string]string {
	files := map[string]string{}
	if o.api {
		kind := "object"
		if o.fault == "CRD refused" {
			kind = "nonsense"
		}
		files["crd-things.yaml"] = fmt.Sprintf(tinyCRD, "things", o.key(), "Thing", kind, o.version)
	}
	if o.sharing {
		files["crd-shareds.yaml"] = fmt.Sprintf(tinyCRD, "shareds", "shared."+o.namespace, "Shared", "object", "none")
	}
	return files
}

// tinyCRD has no sync wave: Argo CD does not track CRDs, so that a sync that waits
// for one goes on at the next resync only.
const tinyCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s.example.com
  labels: {quayside.dev/version: %[5]s}
spec:
  group: %[2]s.example.com
  names: {kind: %[3]s, plural: %[1]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: %[4]s, x-kubernetes-preserve-unknown-fields: true}}
`

// objects returns everything else of the operator, each by its file's name.
func (o tinyOperator) objects() map[string]string {
	files := map[string]string{"configmap.yaml": fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {quayside.dev/version: %[3]s}
data: {version: %[3]s}
`, o.name, o.namespace, o.version)}
	if !o.idle {
		selector, nodes := o.name, "{}"
		switch o.fault {
		case "object refused":
			selector = "another"
		case "unhealthy":
			nodes = "{nowhere: nothing}"
		}
		files["deployment.yaml"] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {quayside.dev/version: %[3]s}
spec:
  selector: {matchLabels: {app: %[4]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: %[5]s
      containers: [{name: manager, image: "registry.example.com/%[1]s:%[3]s"}]
`, o.name, o.namespace, o.version, selector, nodes)
	}
	if o.uses != "" {
		files["thing.yaml"] = fmt.Sprintf(`apiVersion: %[4]s.example.com/v1
kind: Thing
metadata:
  name: %[1]s
  namespace: %[2]s
  labels: {quayside.dev/version: %[3]s}
  annotations: {argocd.argoproj.io/sync-options: SkipDryRunOnMissingResource=true}
`, o.name, o.namespace, o.version, o.uses)
	}
	if o.shared {
		files["shared.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: %s}\n", o.namespace)
	}
	return files
}

// desired returns the objects of the operators with these keys; of all of them
// where none is named.
func (s pieceState) desired(t *testing.T, keys ...string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, o := range s.operators {
		if len(keys) > 0 && !slices.Contains(keys, o.key()) {
			continue
		}
		for _, files := range []map[string]string{o.crds(), o.objects()} {
			for _, name := range slices.Sorted(maps.Keys(files)) {
				list = append(list, objects(t, files[name])...)
			}
		}
	}
	return list
}

// operator returns the operator with that key, to be changed.
func (s pieceState) operator(key string) *tinyOperator {
	i := slices.IndexFunc(s.operators, func(o tinyOperator) bool { return o.key() == key })
	return &s.operators[i]
}

// clone returns a copy that shares nothing with s.
func (s pieceState) clone() pieceState {
	s.clusters, s.operators = slices.Clone(s.clusters), slices.Clone(s.operators)
	s.leaving, s.circles = slices.Clone(s.leaving), slices.Clone(s.circles)
	return s
}

// without returns a copy without the operators with these keys.
func (s pieceState) without(keys ...string) pieceState {
	s = s.clone()
	s.operators = slices.DeleteFunc(s.operators, func(o tinyOperator) bool { return slices.Contains(keys, o.key()) })
	return s
}

// operatorPiece is a piece that consists of operators: of one, or of a circle.
type operatorPiece struct {
	name      string
	operators []tinyOperator
}

// pieces returns the pieces that consist of operators, sorted by name.
func (s pieceState) pieces() []operatorPiece {
	byName := map[string]operatorPiece{}
	for _, o := range s.operators {
		name := s.pieceOf(o.key())
		byName[name] = operatorPiece{name, append(byName[name].operators, o)}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b operatorPiece) int { return cmp.Compare(a.name, b.name) })
}

// pieceOf returns the name of the piece that an operator belongs to.
func (s pieceState) pieceOf(key string) string {
	for _, circle := range s.circles {
		if slices.Contains(circle, key) {
			first, _, _ := strings.Cut(circle[0], ".")
			name := first
			for _, member := range circle {
				_, short, _ := strings.Cut(member, ".")
				name += "." + short
			}
			return name
		}
	}
	return key
}

// requires returns the names of the other pieces that a piece requires.
func (s pieceState) requires(p operatorPiece) []string {
	var out []string
	for _, o := range p.operators {
		for _, required := range append([]string{o.uses}, o.other...) {
			if name := s.pieceOf(required); required != "" && name != p.name {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// packages returns the operators of a piece that have CRDs.
func (p operatorPiece) packages() []string {
	var out []string
	for _, o := range p.operators {
		if len(o.crds()) > 0 {
			out = append(out, o.key())
		}
	}
	return out
}

// namespaces returns the operators' namespaces, sorted.
func (s pieceState) namespaces() []string {
	var out []string
	for _, o := range s.operators {
		out = append(out, o.namespace)
	}
	for _, key := range s.leaving {
		namespace, _, _ := strings.Cut(key, ".")
		out = append(out, namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pieceFiles are files by their names below the root of the repository.
type pieceFiles map[string]string

// baseTree returns the part of the tree that is the same for all engines.
func baseTree(s pieceState) pieceFiles {
	files := pieceFiles{}
	var directories []string
	for _, namespace := range s.namespaces() {
		dir := path.Join("namespaces", namespace)
		files.addKustomization(dir, map[string]string{"namespace.yaml": fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %s
`, namespace)})
		directories = append(directories, dir)
	}
	for _, p := range s.pieces() {
		all := map[string]string{}
		for _, o := range p.operators {
			for name, text := range o.crds() {
				files[path.Join("rendered/crds", o.key(), name)] = text
			}
			for name, text := range o.objects() {
				all[strings.TrimSuffix(name, ".yaml")+"-"+o.name+".yaml"] = text
			}
			if o.shared {
				all["shared.yaml"] = all["shared-"+o.name+".yaml"]
				delete(all, "shared-"+o.name+".yaml")
			}
		}
		files.addKustomization(path.Join("operators", p.name), all)
		directories = append(directories, path.Join("operators", p.name))
	}
	for _, key := range s.leaving {
		files[path.Join("rendered/leaving", key, ".quayside-files")] = ""
	}
	if s.whole {
		list := "resources:\n"
		for _, dir := range directories {
			list += "- ../" + dir + "\n"
		}
		files["rendered/all/kustomization.yaml"] = list
	}
	return files
}

// addKustomization adds a directory with a kustomization over its files.
func (f pieceFiles) addKustomization(dir string, files map[string]string) {
	list := "resources:\n"
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list += "- " + name + "\n"
		f[path.Join("rendered", dir, name)] = files[name]
	}
	f[path.Join("rendered", dir, "kustomization.yaml")] = list
}

// addDigests adds a listing with digests to every directory of the tree.
func (f pieceFiles) addDigests() {
	byDirectory := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if dir, file := path.Split(name); strings.HasPrefix(name, "rendered/") && file != ".quayside-files" {
			byDirectory[dir] += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(f[name])), file)
		}
	}
	for dir, text := range byDirectory {
		f[dir+".quayside-files"] = text
	}
}

// write makes the files all that a directory holds.
func (f pieceFiles) write(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
