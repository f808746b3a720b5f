package render

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
)

// attributes makes GitHub and GitLab collapse the files of the tree in a pull request, so that reviewers see
// the lock and the user's own files. With merge=union, Git keeps the entries of both branches in index files
// and in the kustomizations that list all operators. The next render sorts the entries and removes outdated
// entries.
const attributes = "* linguist-generated gitlab-generated\n" + filetree.Index + " merge=union\n" +
	"/kustomization.yaml merge=union\n/clusters/*/kustomization.yaml merge=union\n**/all/kustomization.yaml merge=union\n"

// tree assigns objects to files.
type tree struct {
	opt          Options
	installs     []operator         // sorted by namespace, then package
	replaced     []operator         // operators that have a successor, with their leftover objects; sorted as installs
	uninstalling []lockfile.Leaving // operators being uninstalled
	declared     map[string]lockfile.Namespace
	files        *filetree.Tree
	objects      []Rendered
	warnings     []diag.Warning
	acceptedCRDs []string // see Result.AcceptedCRDs
	ownCRDs      bool     // whether some cluster gets only a part of the CRDs, so that each cluster has its own list
	positions    map[Key]profile.ApplyPosition
	own          map[string]*tree // the trees of clusters with values of their own, by valuesKey

	pieces            []piece           // sorted by name
	namespaces        []string          // names of rendered Namespaces, sorted
	crdDirs           map[string]string // directory of each CRD, by name
	views             []*view           // one for each cluster in opt.Clusters
	configurableCache map[string][]configurable
	pluralCache       map[[2]string]string // cached result of plurals
	buffer            []byte               // of encodeDocuments
}

// build writes all files of the tree: CRDs, Namespaces, operators, the reporter, the directories of
// clusters, and the objects of the GitOps tool.
func (t *tree) build() error {
	if err := t.arrange(); err != nil {
		return err
	}
	if err := t.arrangeOwn(); err != nil {
		return err
	}
	if err := t.writeClusters(); err != nil {
		return err
	}
	if err := t.writeGitOps(); err != nil {
		return err
	}
	t.sortObjects()
	return t.files.Add(".gitattributes", []byte(attributes))
}

// arrange writes the files of the base, and determines the operators and objects of each cluster.
func (t *tree) arrange() error {
	mirrorAll(t.installs, t.opt.Mirrors)
	mirrorAll(t.replaced, t.opt.Mirrors)
	if err := t.writeCRDs(); err != nil {
		return err
	}
	if err := t.checkDistinct(); err != nil {
		return err
	}
	if err := t.reduceLeftovers(); err != nil {
		return err
	}
	var err error
	if t.views, err = t.makeViews(); err != nil {
		return err
	}
	t.pieces = findPieces(t.installs, t.replaced, t.uninstalling)
	t.positions = applyPositions(t.installs, t.replaced, t.opt.byCluster())
	markRecreated(t.positions, t.installs, t.opt.Recreate)
	markHooksAndKept(t.positions, t.installs)
	if err := t.writeNamespaces(); err != nil {
		return err
	}
	if err := t.writeOperators(); err != nil {
		return err
	}
	if err := t.writeUninstalled(); err != nil {
		return err
	}
	t.warnRejected()
	if t.opt.Reporter != nil {
		return t.writeReporter()
	}
	return nil
}

// sortObjects sorts the objects by path, then key.
func (t *tree) sortObjects() {
	slices.SortFunc(t.objects, func(a, b Rendered) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), a.Object.Key().Compare(b.Object.Key()))
	})
}

// add writes objects of the base to the file dir/file, one YAML document each. owner is the
// operator of the objects, or nil.
func (t *tree) add(owner *operator, dir, file string, objects ...Object) error {
	objects = slices.Clone(objects)
	for i, o := range objects {
		objects[i] = t.annotate(o)
		var errs diag.List
		if checkBuildable(diag.Pos{}, o, &errs); errs.Err() != nil {
			return errs.Err()
		}
		t.objects = append(t.objects, Rendered{Path: path.Join(dir, file), Object: objects[i], operator: owner})
	}
	var text []byte
	if !t.opt.ObjectsOnly {
		text = t.encodeDocuments(objects)
	}
	return t.files.Add(path.Join(dir, file), text)
}

// encodeDocuments returns objects as multi-document YAML.
func (t *tree) encodeDocuments(objects []Object) []byte {
	t.buffer = t.buffer[:0]
	for i, o := range objects {
		if i > 0 {
			t.buffer = append(t.buffer, "---\n"...)
		}
		t.buffer = yamlnode.AppendEncoded(t.buffer, o)
	}
	return slices.Clone(t.buffer)
}

// annotate returns an object with annotations for the GitOps tool.
func (t *tree) annotate(o Object) Object {
	position := t.positions[o.Key()]
	position.InPiece = !t.opt.byCluster()
	return t.opt.profile.Annotate(o, position)
}

func (t *tree) annotateAll(objects []Object) []Object {
	for i, o := range objects {
		objects[i] = t.annotate(o)
	}
	return objects
}

// writeKustomization writes a kustomization to dir. It lists resources in the given order.
func (t *tree) writeKustomization(dir string, resources []string) error {
	return t.files.Add(path.Join(dir, layout.Kustomization), encodeKustomization(map[string]any{"resources": k8s.Values(resources...)}))
}

// encodeKustomization returns a kustomization file with the given fields. It modifies its argument.
func encodeKustomization(fields map[string]any) []byte {
	fields["apiVersion"], fields["kind"] = "kustomize.config.k8s.io/v1beta1", "Kustomization"
	return yamlnode.Encode(fields)
}

// writeOperators writes a directory for each piece.
func (t *tree) writeOperators() error {
	for _, p := range t.pieces {
		var all []string
		for _, in := range p.members {
			names, err := t.writeOperator(in, p.memberDir(in))
			if err != nil {
				return fmt.Errorf("rendering %s: %w", in.name(), err)
			}
			if dir := p.memberDir(in); dir != p.dir() {
				if err := t.writeKustomization(dir, names); err != nil {
					return err
				}
				names = []string{path.Base(dir)}
			}
			all = append(all, names...)
		}
		slices.Sort(all)
		if err := t.files.Add(path.Join(p.dir(), layout.Kustomization), encodeKustomization(annotatedKustomization(all, p.crds(t.crdDirs)))); err != nil {
			return err
		}
	}
	return nil
}

// writeUninstalled writes an empty piece for each operator being uninstalled, so that the engine prunes the
// objects that it applied before. The empty piece has its own directory: if the usual directory of an operator
// is empty by mistake, the operator is not uninstalled.
func (t *tree) writeUninstalled() error {
	if t.opt.byCluster() {
		return nil
	}
	for _, l := range t.uninstalling {
		if len(l.With) > 0 {
			continue
		}
		dir := path.Join(layout.Leaving, pieceName(l.Pin))
		if err := t.files.Add(path.Join(dir, layout.Kustomization), encodeKustomization(annotatedKustomization(nil, nil))); err != nil {
			return err
		}
	}
	return nil
}

// writeOperator writes the objects of an operator, and returns the sorted names of the files.
func (t *tree) writeOperator(in *operator, dir string) ([]string, error) {
	single, aggregated := in.splitAggregated()
	names := fileNames(naming{maxLength: maxFileName(dir), namespace: in.pin.Namespace, pkg: in.pin.Package}, single)
	for i, o := range single {
		if err := t.add(in, dir, names[i], o); err != nil {
			return nil, err
		}
	}
	if len(aggregated) > 0 {
		file := aggregatedFile(maxFileName(dir))
		if err := t.add(in, dir, file, aggregated...); err != nil {
			return nil, err
		}
		names = append(names, file)
	}
	slices.Sort(names)
	return names, nil
}

// splitAggregated returns the objects of the operator that have a file each, and the aggregated
// roles, which share a file. Both lists are sorted by key.
func (o operator) splitAggregated() (single, aggregated []Object) {
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

// checkDistinct returns an error if two operators ship the same object with different content. If the content is
// equal, only the first operator keeps the object, and the others list it in sharedObjects. If a package is
// installed several times, a ClusterRoleBinding of the first install gets the subjects of all installs.
func (t *tree) checkDistinct() error {
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
			case k8s.Equal(withoutOwner(*same), withoutOwner(o)):
			case ok && in.pin.Package == other.pin.Package:
				*same = joined
			default:
				errs = append(errs, fmt.Errorf("%s and %s both contain %s, with different content", other.name(), in.name(), o.Key()))
			}
			in.sharedObjects = append(in.sharedObjects, o)
		}
		in.objects = own
	}
	return errors.Join(errs...)
}

// joinSubjects returns a ClusterRoleBinding with the subjects of a and b. It returns false if a and b are not
// ClusterRoleBindings with the same roleRef.
func joinSubjects(a, b Object) (Object, bool) {
	if !a.Is(k8s.RBACGroup, "ClusterRoleBinding") || !k8s.Equal(a["roleRef"], b["roleRef"]) {
		return nil, false
	}
	return k8s.With(a, any(mergeLists(k8s.List(a, "subjects"), k8s.List(b, "subjects"))), "subjects"), true
}

// withoutOwner returns o without the labels and version of its operator.
func withoutOwner(o Object) Object {
	for _, key := range []string{k8s.LabelPackage, k8s.LabelNamespace} {
		o = k8s.Without(o, "metadata", "labels", key)
	}
	return withoutVersion(o)
}
