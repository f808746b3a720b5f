package render

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/profile"
)

// attributes has GitHub and GitLab fold the tree in a pull request, so that the lock
// and what a team wrote itself are what is read.
const attributes = "* linguist-generated gitlab-generated\n"

// tree lays objects out as files.
type tree struct {
	opt      Options
	installs []opened           // by namespace, then package
	leaving  []opened           // what is left of operators that installs follow, likewise
	gone     []lockfile.Leaving // operators that are being uninstalled
	declared map[string]lockfile.Namespace
	files    *filetree.Tree
	objects  []Rendered
	warnings []diag.Warning
	ownCRDs  bool // some cluster does not get every CRD
	places   map[Key]profile.Place

	pieces     []piece           // by name
	namespaces []string          // that are rendered, sorted
	crdDirs    map[string]string // of each definition, its directory
	chosenBy   map[string][]*opened
	changes    map[string][]changeable
	plural     map[[2]string]string // of plurals
}

// build fills the tree: CRDs, Namespaces, operators, the reporter, what differs in
// clusters, and what the GitOps tool needs.
func (t *tree) build() error {
	t.mirrored()
	if err := t.crds(); err != nil {
		return err
	}
	if err := t.distinct(); err != nil {
		return err
	}
	if err := t.leftovers(); err != nil {
		return err
	}
	t.pieces = t.findPieces()
	t.arrange()
	if err := t.writeNamespaces(); err != nil {
		return err
	}
	if err := t.operators(); err != nil {
		return err
	}
	if err := t.uninstalled(); err != nil {
		return err
	}
	t.refused()
	if t.opt.Reporter != nil {
		if err := t.reporter(); err != nil {
			return err
		}
	}
	if err := t.clusters(); err != nil {
		return err
	}
	if err := t.gitops(); err != nil {
		return err
	}
	return t.files.Add(".gitattributes", []byte(attributes))
}

// mirrored has every workload take its images from mirrors.
func (t *tree) mirrored() {
	for _, list := range [][]opened{t.installs, t.leaving} {
		for i := range list {
			for j, o := range list[i].objects {
				if changes(o) {
					list[i].objects[j] = t.atMirrors(o)
				}
			}
		}
	}
}

// add writes objects of the base to dir/file, one document each. They are of an
// operator, or of none.
func (t *tree) add(of *opened, dir, file string, objects ...Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		objects[i] = t.adorn(o)
		t.objects = append(t.objects, Rendered{Path: path.Join(dir, file), Object: objects[i], operator: of})
	}
	var text []byte
	if !t.opt.ObjectsOnly {
		text = documents(objects)
	}
	return t.files.Add(path.Join(dir, file), text)
}

// documents returns objects as one text, a document each.
func documents(objects []Object) []byte {
	var text []byte
	for i, o := range objects {
		if i > 0 {
			text = append(text, "---\n"...)
		}
		text = append(text, yamlnode.Encode(o)...)
	}
	return text
}

// adorn returns an object of the tree as the tool that applies it wants it.
func (t *tree) adorn(o Object) Object {
	place := t.places[o.Key()]
	place.Alone = !t.byCluster()
	return t.opt.profile.Adorn(o, place)
}

func (t *tree) adornAll(objects []Object) []Object {
	for i, o := range objects {
		objects[i] = t.adorn(o)
	}
	return objects
}

// kustomization writes dir's, which lists resources in that order.
func (t *tree) kustomization(dir string, resources []string) error {
	return t.files.Add(path.Join(dir, layout.Kustomization), kustomization(map[string]any{"resources": kobj.Values(resources...)}))
}

// kustomization returns the file with the given fields.
func kustomization(fields map[string]any) []byte {
	fields["apiVersion"], fields["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	return yamlnode.Encode(fields)
}

// operators writes one directory a piece.
func (t *tree) operators() error {
	for _, p := range t.pieces {
		var all []string
		for _, in := range p.members {
			names, err := t.operator(in, p.memberDir(in))
			if err != nil {
				return fmt.Errorf("rendering %s: %w", in.name(), err)
			}
			if dir := p.memberDir(in); dir != p.dir() {
				if err := t.kustomization(dir, names); err != nil {
					return err
				}
				names = []string{path.Base(dir)}
			}
			all = append(all, names...)
		}
		slices.Sort(all)
		if err := t.files.Add(path.Join(p.dir(), layout.Kustomization), kustomization(marked(all, t.pieceCRDs(p)))); err != nil {
			return err
		}
	}
	return nil
}

// uninstalled writes, for each operator that is being uninstalled, a piece of nothing:
// an engine prunes there what it applied before, at another path. So no piece that is
// empty by mistake is taken for it.
func (t *tree) uninstalled() error {
	if t.byCluster() {
		return nil
	}
	for _, l := range t.gone {
		if len(l.With) > 0 {
			continue
		}
		dir := path.Join(layout.Leaving, pieceName(l.Pin))
		if err := t.files.Add(path.Join(dir, layout.Kustomization), kustomization(marked(nil, nil))); err != nil {
			return err
		}
	}
	return nil
}

// operator writes the objects of one operator, and returns their files, sorted.
func (t *tree) operator(in *opened, dir string) ([]string, error) {
	single, aggregated := in.splitAggregated()
	names := fileNames(naming{room: nameRoom(dir), namespace: in.pin.Namespace, pkg: in.pin.Package}, single)
	for i, o := range single {
		if err := t.add(in, dir, names[i], o); err != nil {
			return nil, err
		}
	}
	if len(aggregated) > 0 {
		file := aggregatedFile(nameRoom(dir))
		if err := t.add(in, dir, file, aggregated...); err != nil {
			return nil, err
		}
		names = append(names, file)
	}
	slices.Sort(names)
	return names, nil
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

// unowned returns o without the labels of its operator.
func unowned(o Object) Object {
	for _, key := range []string{kobj.LabelPackage, kobj.LabelNamespace} {
		o = kobj.Without(o, "metadata", "labels", key)
	}
	return unversioned(o)
}
