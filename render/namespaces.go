package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/lockfile"
)

// writeNamespaces writes the Namespaces that are declared and those that something
// is installed in, each once in a directory of its own. What the cluster makes
// stays out. Where a bundle ships one itself, that has the place.
func (t *tree) writeNamespaces() error {
	installs := map[string][]opened{}
	for _, in := range t.installs {
		installs[in.pin.Namespace] = append(installs[in.pin.Namespace], in)
	}
	for _, in := range t.leaving {
		if home := installs[in.pin.Namespace]; len(home) == 0 || home[0].follower != "" {
			installs[in.pin.Namespace] = append(home, in)
		}
	}
	t.expectNamespaces(installs)
	all := slices.AppendSeq(slices.Collect(maps.Keys(installs)), maps.Keys(t.declared))
	slices.Sort(all)
	shipped := t.shippedNamespaces()
	for _, name := range slices.Compact(all) {
		d, isDeclared := t.declared[name]
		switch {
		case kinds.Everywhere(name):
			if isDeclared {
				t.warn(diag.Pos{}, name, "namespace-reserved",
					"Namespace %q is declared and not rendered, for every cluster makes it itself: its labels and annotations are for whoever sets up the cluster", name)
			}
			continue
		case !isDeclared && kinds.ReservedNamespace(name):
			continue
		case shipped[name] != nil:
			for _, o := range shipped[name] {
				*o = declared(*o, d)
			}
			continue
		}
		dir := path.Join(layout.Namespaces, name)
		file := fitName(nameRoom(dir), "namespace")
		if err := t.add(nil, dir, file, t.namespace(name, installs[name])); err != nil {
			return err
		}
		if err := t.files.Add(path.Join(dir, layout.Kustomization), kustomization(marked([]string{file}, nil))); err != nil {
			return err
		}
		t.namespaces = append(t.namespaces, name)
	}
	return nil
}

// shippedNamespaces returns the Namespaces that bundles bring themselves, by name.
func (t *tree) shippedNamespaces() map[string][]*Object {
	out := map[string][]*Object{}
	for _, in := range t.installs {
		for _, objects := range [][]Object{in.objects, in.others} {
			for i, o := range objects {
				if o.Is("", "Namespace") {
					out[o.Name()] = append(out[o.Name()], &objects[i])
				}
			}
		}
	}
	return out
}

// namespace returns a Namespace with the labels and annotations that are
// declared of it; of one that is not declared, with those of the templates that
// the operators in it suggest.
func (t *tree) namespace(name string, installs []opened) Object {
	o := kobj.New("v1", "Namespace", "", name)
	d, isDeclared := t.declared[name]
	if !isDeclared {
		o = t.suggested(o, installs)
	}
	if len(installs) != 1 {
		return declared(shared(o, name), d)
	}
	pin := installs[0].pin
	owner := map[string]any{kobj.LabelNamespace: name, kobj.LabelPackage: labelValue(pin.Package)}
	return declared(owned(o, owner, pin.Version), d)
}

// declared returns a Namespace with the labels and annotations that are
// declared of it, over those that it has.
func declared(o Object, d lockfile.Namespace) Object {
	for field, more := range map[string]map[string]string{"labels": d.Labels, "annotations": d.Annotations} {
		for key, value := range more {
			o = kobj.With(o, value, "metadata", field, key)
		}
	}
	return o
}

// suggested returns a Namespace with the labels and annotations of the templates
// of the operators in it, the first one's before the others'.
func (t *tree) suggested(o Object, installs []opened) Object {
	const annotation = olm.SuggestedNamespaceTemplate
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
		for _, f := range admit.Metadata(kobj.Annotate(kobj.Label(kobj.New("v1", "Namespace", "", o.Name()), meta.Labels), meta.Annotations)) {
			err = cmp.Or(err, fmt.Errorf("%s: %s", f.Field, f.Message))
		}
		if err != nil {
			t.warn(in.csvPos(), in.pin.Key(), "namespace-template", "annotation %s is passed over, it is not a Namespace in JSON: %v", annotation, err)
			continue
		}
		for name, keys := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
			t.templateDirectives(in, annotation, keys)
			t.templateConflicts(in, kobj.Map(o, "metadata", name), keys)
		}
		o = kobj.Annotate(kobj.Label(o, meta.Labels), meta.Annotations)
	}
	return o
}

// templateDirectives takes out of keys what steers the tool that applies the
// Namespace.
func (t *tree) templateDirectives(in opened, annotation string, keys map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if tool := bundle.Steers(key); tool != "" {
			delete(keys, key)
			t.warn(in.csvPos(), in.pin.Key(), "tool-directive", "annotation %s: %q is dropped, for it steers %s: how a bundle is applied is not the bundle's to say", annotation, key, tool)
		}
	}
}

func (t *tree) templateConflicts(in opened, have map[string]any, want map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got, ok := have[key]; ok && got != want[key] {
			t.warn(diag.Pos{}, in.pin.Key(), "namespace-template", "%s suggests %s=%q for its namespace, another operator there has set %q", in.name(), key, want[key], got)
		}
	}
}

// expectNamespaces says which watched namespaces nobody renders.
func (t *tree) expectNamespaces(rendered map[string][]opened) {
	for _, in := range t.installs {
		for _, ns := range in.pin.WatchNamespaces {
			_, declared := t.declared[ns]
			if _, ok := rendered[ns]; !ok && ns != "" && !declared {
				t.warn(diag.Pos{}, in.pin.Key(), "namespace-expected", "%s watches namespace %q, which is expected to exist", in.name(), ns)
			}
		}
	}
}

// neededNamespaces returns the rendered Namespaces that a cluster needs: those of
// the operators that it gets, and the declared ones that these watch, that the
// reporter is in or that no operator is in.
func (t *tree) neededNamespaces(chosen []*opened) []string {
	return slices.DeleteFunc(slices.Clone(t.namespaces), func(ns string) bool {
		_, declared := t.declared[ns]
		here := func(in *opened) bool {
			return in.pin.Namespace == ns || declared && slices.Contains(in.pin.WatchNamespaces, ns)
		}
		free := declared && !slices.ContainsFunc(slices.Concat(t.installs, t.leaving), func(in opened) bool { return in.pin.Namespace == ns })
		reporter := declared && t.opt.Reporter != nil && t.opt.Reporter.Namespace == ns
		return !free && !reporter && !slices.ContainsFunc(chosen, here)
	})
}
