package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/lockfile"
)

// writeNamespaces writes the declared Namespaces and the install Namespaces, each to its own directory. It omits
// Namespaces that every cluster has, and Namespaces that a bundle ships. A shipped Namespace is rendered with
// its bundle: writeNamespaces only adds the declared labels and annotations to it.
func (t *tree) writeNamespaces() error {
	installs := map[string][]operator{}
	for _, in := range t.installs {
		installs[in.pin.Namespace] = append(installs[in.pin.Namespace], in)
	}
	for _, in := range t.replaced {
		if home := installs[in.pin.Namespace]; len(home) == 0 || home[0].successor != "" {
			installs[in.pin.Namespace] = append(home, in)
		}
	}
	t.warnExpectedNamespaces(installs)
	all := slices.AppendSeq(slices.Collect(maps.Keys(installs)), maps.Keys(t.declared))
	slices.Sort(all)
	shipped := shippedNamespaces(t.installs)
	for _, name := range slices.Compact(all) {
		d, isDeclared := t.declared[name]
		if isDeclared || shipped[name] != nil || k8s.IsReservedNamespace(name) {
			t.warnUnmonitored(name, installs[name])
		}
		switch {
		case k8s.IsDefaultNamespace(name):
			if isDeclared {
				t.warn(diag.Pos{}, name, "namespace-reserved",
					"Namespace %q is declared but not rendered, because it exists in every cluster: set its labels and annotations in the configuration that creates the cluster", name)
			}
			continue
		case !isDeclared && k8s.IsReservedNamespace(name):
			continue
		case shipped[name] != nil:
			for _, o := range shipped[name] {
				*o = declaredNamespace(*o, d)
			}
			continue
		}
		dir := path.Join(layout.Namespaces, name)
		file := fitName(maxFileName(dir), "namespace")
		if err := t.add(nil, dir, file, t.namespace(name, installs[name])); err != nil {
			return err
		}
		if err := t.files.Add(path.Join(dir, layout.Kustomization), encodeKustomization(annotatedKustomization([]string{file}, nil))); err != nil {
			return err
		}
		t.namespaces = append(t.namespaces, name)
	}
	return nil
}

// shippedNamespaces returns the Namespaces in bundles, by name.
func shippedNamespaces(installs []operator) map[string][]*Object {
	out := map[string][]*Object{}
	for _, in := range installs {
		for _, objects := range [][]Object{in.objects, in.sharedObjects} {
			for i, o := range objects {
				if o.Is("", "Namespace") {
					out[o.Name()] = append(out[o.Name()], &objects[i])
				}
			}
		}
	}
	return out
}

// namespace returns a Namespace with its declared labels and annotations. If it is not declared, it has the
// labels and annotations that its operators suggest.
func (t *tree) namespace(name string, installs []operator) Object {
	o := k8s.New("v1", "Namespace", "", name)
	d, isDeclared := t.declared[name]
	if !isDeclared {
		o = t.withSuggestedMetadata(o, installs)
		if t.monitored(installs) != nil && k8s.At(o, "metadata", "labels", catalog.ClusterMonitoringLabel) == nil {
			o = k8s.Label(o, map[string]string{catalog.ClusterMonitoringLabel: "true"})
		}
	}
	if len(installs) != 1 {
		return declaredNamespace(withSharedOwner(o, name), d)
	}
	pin := installs[0].pin
	owner := map[string]any{k8s.LabelNamespace: name, k8s.LabelPackage: k8s.LabelValue(pin.Package)}
	return declaredNamespace(withOwner(o, owner, pin.Version), d)
}

// monitored returns the first operator that requests OpenShift's monitoring of its namespace, or nil. In
// clusters without OpenShift, it returns nil.
func (t *tree) monitored(installs []operator) *operator {
	for i, in := range installs {
		if t.opt.OpenShift && in.b.CSV.Annotations[catalog.ClusterMonitoring] == "true" {
			return &installs[i]
		}
	}
	return nil
}

// warnUnmonitored adds a warning if an operator requests monitoring of a namespace, and no declaration sets the
// label for monitoring. The caller selects namespaces whose labels quayside does not set.
func (t *tree) warnUnmonitored(name string, installs []operator) {
	in := t.monitored(installs)
	if _, decided := t.declared[name].Labels[catalog.ClusterMonitoringLabel]; in == nil || decided {
		return
	}
	t.warn(in.csvPos(), in.pin.Key(), "namespace-monitoring", "%s requests OpenShift's cluster monitoring for namespace %s: declare the Namespace with the label %s set to \"true\" or \"false\"", in.name(), name, catalog.ClusterMonitoringLabel)
}

// declaredNamespace returns a Namespace with the declared labels and annotations. They override existing labels
// and annotations.
func declaredNamespace(o Object, d lockfile.Namespace) Object {
	for field, more := range map[string]map[string]string{"labels": d.Labels, "annotations": d.Annotations} {
		for key, value := range more {
			o = k8s.With(o, value, "metadata", field, key)
		}
	}
	return o
}

// withSuggestedMetadata returns a Namespace with the labels and annotations that its operators suggest. If two
// operators suggest different values, the value of the first operator is used.
func (t *tree) withSuggestedMetadata(o Object, installs []operator) Object {
	const annotation = catalog.SuggestedNamespaceTemplate
	for _, in := range installs {
		text := in.b.CSV.Annotations[annotation]
		if text == "" {
			continue
		}
		var template struct {
			Metadata struct{ Labels, Annotations map[string]string }
		}
		meta := &template.Metadata
		err := json.Unmarshal([]byte(text), &template)
		for _, f := range admit.Metadata(k8s.Annotate(k8s.Label(k8s.New("v1", "Namespace", "", o.Name()), meta.Labels), meta.Annotations)) {
			err = cmp.Or(err, fmt.Errorf("%s: %s", f.Field, f.Message))
		}
		if err != nil {
			t.warn(in.csvPos(), in.pin.Key(), "namespace-template", "annotation %s ignored: not a Namespace in JSON: %v", annotation, err)
			continue
		}
		for name, keys := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
			t.removeToolDirectives(in, annotation, keys)
			t.warnTemplateConflicts(in, k8s.Map(o, "metadata", name), keys)
		}
		o = k8s.Annotate(k8s.Label(o, meta.Labels), meta.Annotations)
	}
	return o
}

// removeToolDirectives removes keys that control GitOps tools from suggested labels or annotations. It adds a
// warning for each removed key.
func (t *tree) removeToolDirectives(in operator, annotation string, keys map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if tool := bundle.ControlledTool(key); tool != "" {
			delete(keys, key)
			t.warn(in.csvPos(), in.pin.Key(), "tool-directive", "annotation %s: %q ignored: bundles must not control %s", annotation, key, tool)
		}
	}
}

func (t *tree) warnTemplateConflicts(in operator, have map[string]any, want map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, ok := have[key]; ok && got != want[key] {
			t.warn(diag.Pos{}, in.pin.Key(), "namespace-template", "%s suggests %s=%q for its namespace, but another operator in the same namespace suggests %q", in.name(), key, want[key], got)
		}
	}
}

// warnExpectedNamespaces adds a warning for each watched namespace that is neither rendered nor
// declared.
func (t *tree) warnExpectedNamespaces(rendered map[string][]operator) {
	for _, in := range t.installs {
		for _, ns := range in.pin.WatchNamespaces {
			_, declared := t.declared[ns]
			if _, ok := rendered[ns]; !ok && ns != "" && !declared {
				t.warn(diag.Pos{}, in.pin.Key(), "namespace-expected", "%s watches namespace %q, which is not rendered and must exist in the cluster", in.name(), ns)
			}
		}
	}
}
