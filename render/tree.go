package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/profile"
)

const kustomizationFile = "kustomization.yaml"

// attributes has GitHub and GitLab fold what is generated in a pull request, so
// that the lock and what a team wrote itself are what is read. It is the team's
// from then on.
const attributes = `* linguist-generated gitlab-generated
/.gitattributes -linguist-generated -gitlab-generated
/clusters/*/** -linguist-generated -gitlab-generated
/clusters/*/generated/** linguist-generated gitlab-generated
/clusters/*/reporter/generated/** linguist-generated gitlab-generated
`

// tree lays objects out as files.
type tree struct {
	opt      Options
	installs []opened // by namespace, then package
	leaving  []opened // what is left of operators that installs follow, likewise
	declared map[string]lockfile.Namespace
	files    *filetree.Tree
	objects  []Rendered
	warnings []diag.Warning
	ownCRDs  bool // some cluster does not get every CRD
	places   map[Key]profile.Place
}

// build fills the tree: CRDs, Namespaces, operators, one overlay a cluster,
// what the GitOps tool needs, and the kustomization of everything.
//
// The levels are there even where nothing is installed: overlays of the user's
// own and the GitOps tool go on naming them when the last operator goes.
func (t *tree) build() error {
	crds, err := t.crds()
	if err != nil {
		return err
	}
	if err := t.distinct(); err != nil {
		return err
	}
	if err := t.leftovers(); err != nil {
		return err
	}
	t.arrange()
	namespaces, err := t.namespaces()
	if err != nil {
		return err
	}
	if err := t.operators(); err != nil {
		return err
	}
	if err := t.clusters(namespaces); err != nil {
		return err
	}
	t.refused()
	if t.opt.Reporter != nil {
		if err := t.reporter(); err != nil {
			return err
		}
	}
	if err := t.gitops(); err != nil {
		return err
	}
	if err := t.files.AddStarter(".gitattributes", []byte(attributes)); err != nil {
		return err
	}
	resources := crds
	if len(namespaces) > 0 {
		resources = append(resources, "namespaces")
	}
	resources = append(resources, "operators")
	if t.opt.Reporter != nil {
		resources = append(resources, reporterDir)
	}
	return t.kustomization(".", resources)
}

// add writes objects of the base to dir/file, one document each.
func (t *tree) add(dir, file string, objects ...Object) error {
	var text []byte
	for _, o := range objects {
		r := Rendered{Path: path.Join(dir, file), Object: t.adorn(o)}
		t.objects = append(t.objects, r)
		if t.opt.ObjectsOnly {
			continue
		}
		if text != nil {
			text = append(text, "---\n"...)
		}
		text = append(text, yamlnode.Encode(r.Object)...)
	}
	return t.files.Add(path.Join(dir, file), text)
}

// adorn returns an object of the tree as the tool that applies it wants it.
func (t *tree) adorn(o Object) Object {
	return t.opt.profile.Adorn(o, t.places[o.Key()])
}

// kustomization writes dir's, which lists resources in that order.
func (t *tree) kustomization(dir string, resources []string) error {
	return t.files.Add(path.Join(dir, kustomizationFile), kustomization(map[string]any{"resources": kobj.Values(resources...)}))
}

// kustomization returns the file with the given fields.
func kustomization(fields map[string]any) []byte {
	fields["apiVersion"], fields["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	return yamlnode.Encode(fields)
}

// operators writes one directory an operator, and the levels above it.
func (t *tree) operators() error {
	packages := map[string][]string{}
	for _, in := range t.everything() {
		dir := path.Join("operators", in.pin.Namespace, in.pin.Package)
		single, aggregated := in.splitAggregated()
		names := fileNames(naming{room: nameRoom(dir), namespace: in.pin.Namespace, pkg: in.pin.Package}, single)
		for i, o := range single {
			if err := t.add(dir, names[i], o); err != nil {
				return fmt.Errorf("rendering %s: %w", in.name(), err)
			}
		}
		if len(aggregated) > 0 {
			file := aggregatedFile(nameRoom(dir))
			if err := t.add(dir, file, aggregated...); err != nil {
				return fmt.Errorf("rendering %s: %w", in.name(), err)
			}
			names = append(names, file)
		}
		if err := t.kustomization(dir, slices.Sorted(slices.Values(names))); err != nil {
			return err
		}
		packages[in.pin.Namespace] = append(packages[in.pin.Namespace], in.pin.Package)
	}
	for _, ns := range slices.Sorted(maps.Keys(packages)) {
		if err := t.kustomization(path.Join("operators", ns), packages[ns]); err != nil {
			return err
		}
	}
	return t.kustomization("operators", slices.Sorted(maps.Keys(packages)))
}

// splitAggregated returns the operator's objects that have a file each, and the
// aggregated roles, which share one. Both are in the order of their keys.
func (o opened) splitAggregated() (single, aggregated []Object) {
	keys := aggregatedRoles(o.b, o.pin)
	for _, object := range o.objects {
		if keys[object.Key()] {
			aggregated = append(aggregated, object)
		} else {
			single = append(single, object)
		}
	}
	return single, aggregated
}

// distinct refuses two operators that ship the same object with different
// content; of equal ones the first keeps it. Of a package that is installed
// again, the first keeps a ClusterRoleBinding with the subjects of all.
func (t *tree) distinct() error {
	type place struct{ install, object int }
	first := map[Key]place{}
	var errs []error
	for i := range t.installs {
		in := &t.installs[i]
		var own []Object
		for _, o := range in.objects {
			at, seen := first[o.Key()]
			if !seen {
				first[o.Key()] = place{i, len(own)}
				own = append(own, o)
				continue
			}
			other := &t.installs[at.install]
			same := &other.objects[at.object]
			switch joined, ok := joinSubjects(*same, o); {
			case kobj.Equal(unowned(*same), unowned(o)):
			case ok && in.pin.Package == other.pin.Package:
				*same = joined
			default:
				errs = append(errs, fmt.Errorf("%s and %s both ship %s, with different content", other.name(), in.name(), o.Key()))
			}
			in.others = append(in.others, o)
		}
		in.objects = own
	}
	return errors.Join(errs...)
}

// joinSubjects returns a ClusterRoleBinding with the subjects of another one too,
// false unless both give the same role.
func joinSubjects(a, b Object) (Object, bool) {
	if !a.Is(rbacGroup, "ClusterRoleBinding") || !kobj.Equal(a["roleRef"], b["roleRef"]) {
		return nil, false
	}
	return kobj.With(a, any(union(kobj.List(a, "subjects"), kobj.List(b, "subjects"))), "subjects"), true
}

// unowned returns o without what says whose it is.
func unowned(o Object) Object {
	for _, key := range []string{kobj.LabelPackage, kobj.LabelNamespace} {
		o = kobj.Without(o, "metadata", "labels", key)
	}
	return unversioned(o)
}
