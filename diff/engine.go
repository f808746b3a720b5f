package diff

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// EngineObjects returns the objects in files that a GitOps tool applies or reads. A file without
// Kubernetes objects, such as clusters.yaml, becomes one object of kind File, with a list of
// clusters converted to a map keyed by cluster name. The error lists all invalid files.
func EngineObjects(files []File) ([]Object, error) {
	var out []Object
	var faults diag.List
	for _, f := range files {
		objects, err := engineObjects(f)
		faults.Add(diag.Pos{File: f.Path}, err)
		out = append(out, objects...)
	}
	return out, faults.Err()
}

func engineObjects(f File) ([]Object, error) {
	list := bytes.HasPrefix(bytes.TrimLeft(f.Data, "\n "), []byte("-")) && !bytes.HasPrefix(f.Data, []byte("---"))
	wrapped := f
	if list {
		wrapped.Data = slices.Concat([]byte("data:\n"), f.Data)
	}
	if isManifest(f.Path) && !list {
		if objects, err := parseObjects(f, nil); err != nil || len(objects) > 0 {
			return objects, err
		}
	}
	docs, err := yamlnode.Objects(wrapped.Path, wrapped.Data, yamlnode.Limits{})
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	var data any = docs[0]
	if list {
		data = mapByCluster(docs[0]["data"])
	}
	content := map[string]any{"apiVersion": "quayside.dev/v1alpha1", "kind": "File", "metadata": map[string]any{"name": f.Path}, "data": normalizeNumbers(data)}
	return []Object{{Path: f.Path, Content: content, key: k8s.Object(content).Key()}}, nil
}

// mapByCluster converts a list of clusters to a map by name. It returns v if v is not a list of
// uniquely named clusters.
func mapByCluster(v any) any {
	out := map[string]any{}
	list, _ := v.([]any)
	for _, e := range list {
		name := k8s.Text(asMap(e), "cluster")
		if _, twice := out[name]; twice || name == "" {
			return v
		}
		out[name] = e
	}
	return out
}

// AppliedDirs returns the directories of a tree that a GitOps tool's object applies, such as
// "operators/my-etcd.etcd". It takes them from the fields named path.
func (o *Object) AppliedDirs() []string {
	var out []string
	forEachField(o.Content, "", func(_, name string, v any) {
		if text, ok := v.(string); ok && name == "path" {
			if dir := treeDir(text); dir != "" {
				out = append(out, dir)
			}
		}
	})
	return out
}

// forEachField calls visit for every field in v, sorted by name within an object. The argument in is
// the name of the field that contains the visited field.
func forEachField(v any, in string, visit func(in, name string, v any)) {
	switch x := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(x) {
			visit(in, name, x[name])
			forEachField(x[name], name, visit)
		}
	case []any:
		for _, e := range x {
			forEachField(e, "", visit)
		}
	}
}

// SourceTexts returns the repositories, revisions, projects and source names in an object of a
// GitOps tool, and the directories that contain the directories of its clusters.
func (o *Object) SourceTexts() []string {
	var out []string
	forEachField(k8s.At(o.Content, "spec"), "", func(in, name string, v any) {
		text, ok := v.(string)
		if ok && (in == "sourceRef" && name == "name" || slices.Contains([]string{"repoURL", "targetRevision", "revision", "project", "url"}, name)) {
			out = append(out, text)
		} else if ok && name == "directory" {
			out = append(out, path.Dir(text)+"/")
		}
	})
	return out
}

// treeDir returns the end of a path that names a directory relative to the root of a rendered tree,
// such as "operators/etcd" for "apps/rendered/operators/etcd", or "" if there is none.
func treeDir(name string) string {
	name = strings.ReplaceAll(name, "}}", "/") // a template ends with a directory name
	for _, top := range []string{layout.Operators, layout.Namespaces, layout.CRDs, layout.Leaving, layout.Pieces, layout.Resources, layout.Reporter, layout.Installations} {
		i := strings.LastIndex("/"+name, "/"+top)
		if i < 0 {
			continue
		}
		if dir := path.Clean(name[i:]); dir == top || strings.HasPrefix(dir, top+"/") {
			return dir
		}
	}
	return ""
}

// engineSeverity returns the severity of a changed field in an object of a GitOps tool. It is
// critical if the host of a URL changes, low if the field does not affect the applied files, the
// repository or the cluster, and high otherwise.
func engineSeverity(ch change) Severity {
	last := ch.path[len(ch.path)-1].key
	a, _ := ch.before.(string)
	b, _ := ch.after.(string)
	switch {
	case slices.ContainsFunc(ch.path, func(s step) bool {
		return slices.Contains([]string{"dependsOn", "healthChecks", "healthCheckExprs", "interval", "retryInterval", "timeout", "retry", "wait"}, s.key)
	}):
		return Low
	case last == "path" && path.Dir(treeDir(a)) == layout.Pieces && path.Dir(treeDir(b)) == layout.Pieces && strings.TrimSuffix(a, treeDir(a)) == strings.TrimSuffix(b, treeDir(b)):
		return Low // a cluster starts or stops sharing pieces with others
	case last == "sources" && (differOnlyInCRDs(ch.before, ch.after) || startsLeaving(ch.before, ch.after)):
		return Low
	case (last == "path" || last == "directory") && isLeavingOf(b, a):
		return Low // rule upgrade.removed reports the operator
	case last == "argocd.argoproj.io/manifest-generate-paths":
		return Low // affects when Argo CD compares the sources, not which sources it compares
	case haveDifferentHosts(ch.before, ch.after):
		return Critical
	}
	return High
}

// startsLeaving reports whether the sources change from those of an operator to the directory for
// its uninstallation, in the same tree and repository.
func startsLeaving(a, b any) bool {
	before, _ := a.([]any)
	after, _ := b.([]any)
	if len(after) != 1 || len(before) == 0 {
		return false
	}
	to := asMap(after[0])
	return !slices.ContainsFunc(before, func(e any) bool {
		from := asMap(e)
		return k8s.Text(from, "repoURL") != k8s.Text(to, "repoURL") || k8s.Text(from, "targetRevision") != k8s.Text(to, "targetRevision") ||
			!isLeavingOf(k8s.Text(to, "path"), k8s.Text(from, "path"))
	})
}

// isLeavingOf reports whether name is the directory of an operator that is being uninstalled, in
// the same tree as the path other.
func isLeavingOf(name, other string) bool {
	dir := treeDir(name)
	return path.Dir(dir) == layout.Leaving && treeDir(other) != "" && strings.HasPrefix(other, strings.TrimSuffix(name, dir))
}

// differOnlyInCRDs reports whether two lists of sources differ only in directories of CRDs.
func differOnlyInCRDs(a, b any) bool {
	repos := func(v any) []string {
		var out []string
		list, _ := v.([]any)
		for _, e := range list {
			out = append(out, k8s.Text(asMap(e), "repoURL")+" "+k8s.Text(asMap(e), "targetRevision"))
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	last := func(v any) string {
		list, _ := v.([]any)
		if len(list) == 0 {
			return ""
		}
		return formatLong(list[len(list)-1])
	}
	return last(a) == last(b) && slices.Equal(repos(a), repos(b)) && containsOnlyCRDPaths(a) && containsOnlyCRDPaths(b)
}

// containsOnlyCRDPaths reports whether all sources except for the last are directories of CRDs.
func containsOnlyCRDPaths(v any) bool {
	list, _ := v.([]any)
	for i, e := range list {
		if i < len(list)-1 && path.Dir(treeDir(k8s.Text(asMap(e), "path"))) != layout.CRDs {
			return false
		}
	}
	return len(list) > 0
}
