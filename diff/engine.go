package diff

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
)

// EngineObjects returns the objects in files that configure a GitOps tool. A file that is not a Kubernetes
// object, such as clusters.yaml, is returned as an object of kind File. The name of this object is the path of
// the file or, if dir is not empty, the path of a file with the same base name in dir. A list of clusters in
// the file becomes a map with the cluster names as keys. The error lists all invalid files.
func EngineObjects(files []File, dir string) ([]Object, error) {
	var out []Object
	var faults diag.List
	for _, f := range files {
		objects, err := engineObjects(f, dir)
		faults.Add(diag.Pos{File: f.Path}, err)
		out = append(out, objects...)
	}
	return out, faults.Err()
}

func engineObjects(f File, dir string) ([]Object, error) {
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
	name := f.Path
	if dir != "" {
		name = path.Join(dir, path.Base(f.Path))
	}
	content := map[string]any{"apiVersion": "quayside.dev/v1alpha1", "kind": "File", "metadata": map[string]any{"name": name}, "data": normalizeNumbers(data)}
	return []Object{{Path: f.Path, Content: content, key: k8s.Object(content).Key()}}, nil
}

// mapByCluster converts a list of clusters to a map with the cluster names as keys. It returns v
// unchanged if v is not a list of clusters with unique names.
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

// AppliedDirs returns the directories of the rendered tree that an object of a GitOps tool applies,
// such as "operators/my-etcd.etcd". They are the values of all fields named path.
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

// forEachField calls visit for every field in v, at any depth and sorted by name within an object.
// The first argument of visit is the name of the enclosing field, or "" at the top and in lists.
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

// SourceTexts returns the repository URLs, revisions, projects and source names in an object of a
// GitOps tool. It also returns the parent directory of each value of a field named directory.
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

// treeDir returns the part of a path that is relative to the root of a rendered tree, such as
// "operators/etcd" for "apps/rendered/operators/etcd". It returns "" if the path is not in a
// rendered tree.
func treeDir(name string) string {
	name = strings.ReplaceAll(name, "}}", "/") // a template expression ends a directory name
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

// fileKind is the kind of the objects that EngineObjects returns for files without Kubernetes
// objects.
const fileKind = "File.quayside.dev"

// isOfEngine reports whether the changed object configures a GitOps tool.
func (f fieldChange) isOfEngine() bool {
	if f.isOf(fileKind) {
		return true
	}
	return isDeliveryGroup(f.objects.after.Key().Group) && f.c.kindSeverityOf(f.objects.after).changed == High
}

// engineChanges returns the severities of changes in the configuration of a GitOps tool.
func engineChanges() []changeSeverity {
	file := []string{fileKind}
	return []changeSeverity{
		{file, func(f fieldChange) bool { return len(f.path) < 3 }, Low}, // a whole entry of a cluster: other rules report its objects
		{file, func(f fieldChange) bool {
			return slices.Contains([]string{"prefix", "overlays", "values", "resources"}, f.path.last())
		}, Low},
		{nil, func(f fieldChange) bool {
			return f.path.contains("dependsOn", "healthChecks", "healthCheckExprs", "interval", "retryInterval", "timeout", "retry", "wait")
		}, Low},
		{nil, fieldChange.sharesPieces, Low},
		{nil, func(f fieldChange) bool {
			return f.path.last() == "sources" && (differOnlyInCRDs(f.before, f.after) || startsLeaving(f.before, f.after))
		}, Low},
		{nil, fieldChange.leaves, Low}, // rule upgrade.removed reports the uninstallation
		{nil, fieldChange.emptiesLeaving, Low},
		// The annotation affects the time at which Argo CD compares the sources, not the choice of sources.
		{nil, func(f fieldChange) bool { return f.path.last() == "argocd.argoproj.io/manifest-generate-paths" }, Low},
		{nil, fieldChange.changesHost, Critical},
	}
}

// texts returns the values before and after the change, each "" if it is not a string.
func (f fieldChange) texts() (before, after string) {
	before, _ = f.before.(string)
	after, _ = f.after.(string)
	return before, after
}

// sharesPieces reports whether the change only switches a cluster to another directory below
// pieces/. This happens if the cluster starts or stops sharing its pieces with other clusters.
func (f fieldChange) sharesPieces() bool {
	a, b := f.texts()
	return f.path.last() == "path" && path.Dir(treeDir(a)) == layout.Pieces && path.Dir(treeDir(b)) == layout.Pieces && strings.TrimSuffix(a, treeDir(a)) == strings.TrimSuffix(b, treeDir(b))
}

// leaves reports whether a path changes from the directory of an operator to the directory for its
// uninstallation.
func (f fieldChange) leaves() bool {
	a, b := f.texts()
	return (f.path.last() == "path" || f.path.last() == "directory") && isLeavingOf(b, a)
}

// emptiesLeaving reports whether the change sets or removes allowEmpty for the directory of an
// operator being uninstalled. With allowEmpty, a GitOps tool may delete all objects.
func (f fieldChange) emptiesLeaving() bool {
	o := f.objects.after
	if f.after != true {
		o = f.objects.before
	}
	if o == nil {
		return false
	}
	dirs := o.AppliedDirs()
	return f.path.last() == "allowEmpty" && len(dirs) > 0 && !slices.ContainsFunc(dirs, func(dir string) bool { return path.Dir(dir) != layout.Leaving })
}

// changesHost reports whether a URL changes to another host.
func (f fieldChange) changesHost() bool {
	host := func(v any) string {
		s, _ := v.(string)
		u, err := url.Parse(s)
		if err != nil {
			return ""
		}
		return u.Host
	}
	return host(f.before) != "" && host(f.after) != "" && host(f.before) != host(f.after)
}

// startsLeaving reports whether the sources of an Application change from a, the directories of an
// operator, to b, the directory for its uninstallation. Both must be in the same tree and
// repository.
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

// isLeavingOf reports whether name is the directory for the uninstallation of an operator, in the
// same tree as the directory other.
func isLeavingOf(name, other string) bool {
	dir := treeDir(name)
	return path.Dir(dir) == layout.Leaving && treeDir(other) != "" && strings.HasPrefix(other, strings.TrimSuffix(name, dir))
}

// differOnlyInCRDs reports whether two lists of sources differ only in directories of CRDs. The
// last source, the operator itself, must be the same.
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
		return formatValue(list[len(list)-1])
	}
	return last(a) == last(b) && slices.Equal(repos(a), repos(b)) && containsOnlyCRDPaths(a) && containsOnlyCRDPaths(b)
}

// containsOnlyCRDPaths reports whether all sources except the last are directories of CRDs.
func containsOnlyCRDPaths(v any) bool {
	list, _ := v.([]any)
	for i, e := range list {
		if i < len(list)-1 && path.Dir(treeDir(k8s.Text(asMap(e), "path"))) != layout.CRDs {
			return false
		}
	}
	return len(list) > 0
}
