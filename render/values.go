package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// A cluster with its own values for a chart has its own tree, in which the chart is rendered with these values.
// Only the objects of that tree are used: the directories of the cluster contain the differences from the base.

// valuesKey returns a key for the values of a cluster, or "" if the cluster has no values.
func valuesKey(c profile.Cluster) string {
	if len(c.HelmValues) == 0 {
		return ""
	}
	data, err := json.Marshal(c.HelmValues)
	if err != nil {
		panic(fmt.Sprintf("render: values of cluster %s: %v", c.Name, err)) // impossible: they were parsed
	}
	return string(data)
}

// cloneOperators returns a copy of a list of operators. The caller may change the lists of objects in the copy.
func cloneOperators(list []operator) []operator {
	out := slices.Clone(list)
	for i := range out {
		out[i].objects, out[i].crds = slices.Clone(out[i].objects), slices.Clone(out[i].crds)
	}
	return out
}

// valuesRenderer renders operators with the values of clusters.
type valuesRenderer struct {
	opt      Options
	open     func(lockfile.Pin) (fs.FS, error)
	known    map[string]operator // rendered operators, by name and values
	warnings []diag.Warning
}

// addValueTrees adds a tree to t.own for each distinct set of cluster values. installs and replaced are the
// operators of t, before arrange changes their objects.
func (t *tree) addValueTrees(installs, replaced []operator, open func(lockfile.Pin) (fs.FS, error)) error {
	r := &valuesRenderer{opt: t.opt, open: open, known: map[string]operator{}}
	var faults diag.List
	for _, c := range t.opt.Clusters {
		key := valuesKey(c)
		if key == "" {
			continue
		}
		own := t.own[key]
		if own == nil {
			r.warnings = nil
			own = newTree(t.opt, cloneOperators(installs), cloneOperators(replaced), nil)
			own.opt.Clusters, own.opt.ObjectsOnly, own.uninstalling, own.declared = nil, true, t.uninstalling, t.declared
			for i, in := range own.installs {
				values, has := c.HelmValues[in.name()]
				if !has {
					continue
				}
				var err error
				own.installs[i], err = r.render(in, values)
				faults.Add(diag.Pos{}, atValues(c, in.name(), err))
			}
			own.warnings = slices.Clone(r.warnings)
			if t.own == nil {
				t.own = map[string]*tree{}
			}
			t.own[key] = own
		}
		faults.Add(diag.Pos{}, checkValues(c, installs))
		own.opt.Clusters = append(own.opt.Clusters, c)
	}
	return faults.Err()
}

// checkValues returns an error for each operator for which a cluster sets values that have no effect.
func checkValues(c profile.Cluster, installs []operator) error {
	var faults diag.List
	var known []string
	for _, in := range installs {
		if gets, err := c.Gets(in.name()); err == nil && gets && in.pin.Template != nil {
			known = append(known, in.name())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.HelmValues)) {
		at := c.ValuesAt[name]
		i := slices.IndexFunc(installs, func(in operator) bool { return in.name() == name })
		switch {
		case slices.Contains(known, name):
		case i >= 0 && installs[i].pin.Template == nil:
			faults.Add(at, diag.Hintf(at, "remove the values, or change the operator with a patch in overlays/"+path.Join(c.Name, pieceName(installs[i].pin)),
				"values of an operator that is not a Helm chart: %s in cluster %q", name, c.Name))
		default:
			faults.Add(at, diag.Hintf(at, "use the key namespace/package of a chart that the cluster installs, or remove the values",
				"values of an unknown operator: cluster %q has no chart %s%s", c.Name, name, diag.DidYouMean(name, known)))
		}
	}
	return faults.Err()
}

// atValues returns err with the position at which the cluster sets the operator's values.
func atValues(c profile.Cluster, operator string, err error) error {
	if err == nil {
		return nil
	}
	at, prefix := c.ValuesAt[operator], fmt.Sprintf("values of %s in cluster %q", operator, c.Name)
	if e, ok := errors.AsType[*diag.Error](err); ok {
		return diag.Hintf(at, e.Hint, "%s: %s", prefix, (&diag.Error{Pos: e.Pos, Msg: e.Msg, Err: e.Err}).Error())
	}
	return diag.Errorf(at, "%s: %w", prefix, err)
}

// render returns the operator rendered with values, which override the values in its pin.
func (r *valuesRenderer) render(in operator, values json.RawMessage) (operator, error) {
	if in.pin.Template == nil {
		return in, nil // checkValues reports it
	}
	merged, err := mergeValues(in.pin.Template.Values, values)
	if err != nil {
		return in, err
	}
	key := in.name() + " " + string(merged)
	if known, is := r.known[key]; is {
		return known, nil
	}
	pin, template := in.pin, *in.pin.Template
	template.Values = merged
	pin.Template = &template
	fsys, err := r.open(pin)
	if err != nil {
		return in, err
	}
	out := []operator{{pin: pin}}
	if out[0].b, err = loadPinned(fsys, pin); err != nil {
		return in, err
	}
	warnings, err := renderAll(out, r.opt)
	if err != nil {
		return in, err
	}
	r.warnings = append(r.warnings, warnings...)
	if err := equalCRDs(in.crds, out[0].crds); err != nil {
		return in, err
	}
	out[0].pin, r.known[key] = in.pin, out[0]
	return out[0], nil
}

// mergeValues merges two JSON objects. The values of over take precedence over the values of under. A null in
// over remains in the result: it removes a default of the chart.
func mergeValues(under, over json.RawMessage) (json.RawMessage, error) {
	var a, b map[string]any
	if len(under) > 0 {
		if err := utiljson.Unmarshal(under, &a); err != nil {
			return nil, err
		}
	}
	if err := utiljson.Unmarshal(over, &b); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(k8s.Merge(a, b))
	if err != nil {
		return nil, err
	}
	return yamlnode.Canonical(raw)
}

// equalCRDs returns an error if the CRDs of a cluster with values (own) differ from the CRDs that all clusters share.
func equalCRDs(base, own []Object) error {
	byName := map[string]Object{}
	for _, crd := range base {
		byName[crd.Name()] = crd
	}
	const hint = "set the values in the Subscription: all clusters share the CRDs"
	for _, crd := range own {
		other, has := byName[crd.Name()]
		if !has {
			return diag.Hintf(diag.Pos{}, hint, "they add CustomResourceDefinition %s", crd.Name())
		}
		if !k8s.Equal(other, crd) {
			return diag.Hintf(diag.Pos{}, hint, "they change CustomResourceDefinition %s", crd.Name())
		}
		delete(byName, crd.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		return diag.Hintf(diag.Pos{}, hint, "they remove CustomResourceDefinition %s", name)
	}
	return nil
}

// arrangeOwn arranges the trees of the clusters with values of their own (t.own). It then lets the view of each such
// cluster in t refer to the cluster's view in its own tree.
func (t *tree) arrangeOwn() error {
	for _, key := range slices.Sorted(maps.Keys(t.own)) {
		own := t.own[key]
		var names []string
		for _, c := range own.opt.Clusters {
			names = append(names, c.Name)
		}
		if err := own.arrange(); err != nil {
			return fmt.Errorf("rendering cluster %s with its values: %w", diag.Some(names, 3), err)
		}
		own.sortObjects()
		for _, w := range own.warnings {
			if !slices.Contains(t.warnings, w) {
				w.Msg = "cluster " + diag.Some(names, 3) + ": " + w.Msg
				t.warnings = append(t.warnings, w)
			}
		}
	}
	for _, v := range t.views {
		if own := t.own[valuesKey(v.cluster)]; own != nil {
			var err error
			if v.own, err = own.view(v.cluster.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// inPiece returns the objects of the cluster that belong to a piece, without changes by the cluster's config.
func (v *view) inPiece(p piece) []inheritedObject {
	var out []inheritedObject
	belongs := func(in *operator) bool {
		return slices.ContainsFunc(p.members, func(o *operator) bool { return o.name() == in.name() })
	}
	for _, in := range v.here {
		if belongs(in) {
			for _, o := range in.objects {
				out = append(out, inheritedObject{o, in})
			}
		}
	}
	for _, o := range inheritedObjects(v.here) {
		if belongs(o.by) {
			out = append(out, o)
		}
	}
	return out
}

// valueChanges returns the changes from the objects of a piece in the base to the cluster's objects: files with
// objects that the base does not have, files with patches, and the entries of the kustomization for the patches.
func (v *view) valueChanges(p piece, cfg config) (added []file, targets []any, patches []file, err error) {
	want := map[Key]Object{}
	for _, o := range v.own.inPiece(p) {
		object := o.object
		if o.by.successor == "" {
			object = cfg.applyToCopy(object)
		}
		if err := cfg.checkMounts(diag.Pos{}, object); err != nil {
			return nil, nil, nil, err
		}
		want[o.object.Key()] = v.own.annotate(object)
	}
	n := naming{maxLength: maxClusterFileName(v.cluster, p.dir())}
	if len(p.members) == 1 { // the path of the directory has them
		n.namespace, n.pkg = p.members[0].pin.Namespace, p.members[0].pin.Package
	}
	var base, changed []Object
	for _, in := range p.members {
		if slices.Contains(v.here, in) {
			base = append(base, in.objects...)
		}
	}
	operations := map[Key][]any{}
	for _, o := range base {
		annotated, key := v.annotate(o), o.Key()
		to, has := want[key]
		if !has || to.APIVersion() != o.APIVersion() {
			targets = append(targets, deletePatch(o))
			continue
		}
		delete(want, key)
		if ops := appendPatch(nil, "", map[string]any(annotated), map[string]any(to)); len(ops) > 0 {
			changed, operations[key] = append(changed, o), ops
		}
	}
	const prefix = "patch-"
	patchNames := n
	patchNames.maxLength -= len(prefix)
	for i, name := range fileNames(patchNames, changed) {
		o := changed[i]
		patches = append(patches, file{prefix + name, yamlnode.Encode(operations[o.Key()])})
		targets = append(targets, map[string]any{"path": prefix + name, "target": patchTarget(o)})
	}
	rest := slices.SortedFunc(maps.Values(want), func(a, b Object) int { return a.Key().Compare(b.Key()) })
	for i, name := range fileNames(n, rest) {
		added = append(added, file{name, yamlnode.Encode(rest[i])})
	}
	slices.SortFunc(added, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return added, targets, patches, nil
}

// deletePatch returns the entry of a kustomization that deletes an object.
func deletePatch(o Object) any {
	removed := k8s.New(o.APIVersion(), o.Kind(), o.Namespace(), o.Name())
	removed["$patch"] = "delete"
	return map[string]any{"patch": string(yamlnode.Encode(removed))}
}
