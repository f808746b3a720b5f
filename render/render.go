// Package render turns bundles and the pins of a lock into plain Kubernetes manifests, in trees
// that stock kustomize builds.
//
// Rendering is a pure function of the lock, the options and the content of bundles. It reads no files and no
// clock, ignores subscriptions, and returns the same bytes for the same input. The function objectGenerators
// lists the kinds of objects that are generated for a bundle.
//
// kustomize can build each directory that has a kustomization separately. Some of these directories are pieces:
// a GitOps tool applies each piece on its own. A tree has this layout:
//
//	clusters.yaml                     clusters, with the path prefixes of their directories
//	crds/<package>/                   CRDs, without a kustomization
//	namespaces/<namespace>/           a piece: an install or declared Namespace
//	operators/<namespace>.<package>/  a piece: one object per file; aggregated roles share one
//	reporter/                         a piece: the reporter, if enabled
//	installations/                    Installations, one file per pin, without a kustomization
//	clusters/<name>/…                 the cluster's own versions of these directories, if they differ
//	all/, clusters/<name>/all/        list of all pieces, if they are applied as one
//	argocd/ or flux/<name>/           objects of the GitOps tool that the user applies once
//	pieces/                           objects of the GitOps tool, each of which applies one piece
//
// The directories outside of clusters/ are the base, which clusters share. The user's own changes are next to
// the tree in overlays/<cluster>/. These overlays are Components of the kustomizations in clusters/<cluster>/.
// Every file depends on one pin or on settings only, except the files in all/.
//
// The package has no compatibility promise yet: exported names may change in any release.
//
// Start from [All], [Manifests] and [StreamOverlay].
package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Result is the rendered tree of a lock.
type Result struct {
	Tree     *filetree.Tree
	Objects  []Rendered     // objects of the base, sorted by Path, then key
	Warnings []diag.Warning // sorted

	// AcceptedCRDs are digests of the CRDs that were checked. Pass them to later renderings in
	// Options.AcceptedCRDs to skip the check, which takes longer than the rest of the rendering.
	AcceptedCRDs []string

	tree *tree // the rendered tree, for methods such as Installations
}

// ShippedKeys returns the keys of all objects that an operator ("namespace/package") ships in some cluster,
// sorted. The result includes objects that the tree contains in the directory of another operator.
func (r *Result) ShippedKeys(operator string) []Key {
	var out []Key
	for _, t := range append(slices.Collect(maps.Values(r.tree.own)), r.tree) {
		for _, in := range slices.Concat(t.installs, t.replaced) {
			if in.name() != operator {
				continue
			}
			for _, o := range slices.Concat(in.objects, in.crds, in.sharedObjects) {
				out = append(out, o.Key())
			}
		}
	}
	slices.SortFunc(out, Key.Compare)
	return slices.Compact(out)
}

// SuggestedNamespaceTemplate returns the template for the Namespace that an operator suggests, or
// "".
func (r *Result) SuggestedNamespaceTemplate(operator string) string {
	for _, in := range r.tree.installs {
		if in.name() == operator {
			return in.b.CSV.Annotations[catalog.SuggestedNamespaceTemplate]
		}
	}
	return ""
}

// Rendered is an object of the base.
type Rendered struct {
	Object  Object
	Path    string // path in the tree, such as "operators/my-etcd.etcd/deployment-etcd-operator.yaml"
	Refused string // reason why the CRD of the object rejects it; empty: accepted

	operator *operator // nil if the object belongs to no single operator
}

// Operator returns the operator of the object as namespace/package, or "" if it belongs to no single
// operator.
func (r Rendered) Operator() string {
	if r.operator == nil {
		return ""
	}
	return r.operator.name()
}

// operator is a pin with its bundle and its rendered objects.
type operator struct {
	pin           lockfile.Pin
	b             *bundle.Bundle
	objects       []Object // without CRDs
	crds          []Object
	sharedObjects []Object // objects of the bundle that the tree has in the directory of another operator

	successor string // successor ("namespace/package"), if the operator is replaced
}

// name returns "namespace/package".
func (o operator) name() string { return o.pin.Namespace + "/" + o.pin.Package }

// wrapError adds the name of the operator to an error.
func (o operator) wrapError(err error) error {
	return fmt.Errorf("%s:\n%w", sanitize.Line("rendering "+o.name()+" ("+o.pin.Bundle+")"), err)
}

// bundlePos returns a position in the bundle, prefixed with the name of the bundle.
func (o operator) bundlePos(pos diag.Pos) diag.Pos {
	pos.File = path.Join(o.b.CSV.Name, pos.File)
	return pos
}

// csvPos returns the position of the bundle's CSV.
func (o operator) csvPos() diag.Pos { return o.bundlePos(diag.Pos{File: o.b.CSV.File}) }

func (t *tree) warn(pos diag.Pos, subject, code, format string, args ...any) {
	t.warnings = append(t.warnings, diag.Warning{Pos: pos, Subject: subject, Code: code, Msg: fmt.Sprintf(format, args...)})
}

// All renders every pin of the lock, and the leftover objects of replaced operators. open returns the content
// of a pin's bundle. If bundles cannot be opened, the error lists only these bundles. Otherwise it lists all
// faults of all bundles. All does not modify its arguments.
func All(lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error)) (*Result, error) {
	opt, err := opt.defaults()
	if err != nil {
		return nil, err
	}
	installs, err1 := loadBundles(lock.Pins, open)
	replacedPins, uninstalling := leavingPins(lock)
	replaced, err2 := loadBundles(replacedPins, open)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	for i := range replaced {
		uninstalling, _ := lock.LeavingOperator(replaced[i].name())
		replaced[i].successor = lock.Successor(uninstalling)
	}
	warnings, err1 := renderAll(installs, opt)
	_, err2 = renderAll(replaced, opt) // ignore the warnings: they were reported when these operators were installed
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	t := newTree(opt, installs, replaced, warnings)
	t.uninstalling, t.declared = uninstalling, map[string]lockfile.Namespace{}
	for _, n := range lock.Namespaces {
		t.declared[n.Name] = n
	}
	if err := t.addValueTrees(installs, replaced, open); err != nil {
		return nil, err
	}
	if err := t.build(); err != nil {
		return nil, err
	}
	return &Result{Tree: t.files, Objects: t.objects, Warnings: diag.SortWarnings(t.warnings), AcceptedCRDs: t.acceptedCRDs, tree: t}, nil
}

func newTree(opt Options, installs, replaced []operator, warnings []diag.Warning) *tree {
	return &tree{
		opt: opt, installs: installs, replaced: replaced, files: filetree.New(), warnings: warnings, crdDirs: map[string]string{}, configurableCache: map[string][]configurable{},
	}
}

// leavingPins returns the pins of replaced operators, and the operators being uninstalled. In the field With of
// the operators being uninstalled, it keeps only operators that are still pinned.
func leavingPins(lock *lockfile.File) (replaced []lockfile.Pin, uninstalling []lockfile.Leaving) {
	for _, l := range lock.Leaving {
		if l.ReplacedBy == "" {
			l.With = slices.DeleteFunc(slices.Clone(l.With), func(key string) bool {
				ns, pkg, _ := strings.Cut(key, "/")
				_, pinned := lock.Pin(ns, pkg)
				return !pinned
			})
			uninstalling = append(uninstalling, l)
			continue
		}
		replaced = append(replaced, l.Pin)
	}
	return replaced, uninstalling
}

// renderAll renders the objects of each operator, and stores them in installs. The error lists all
// faults.
func renderAll(installs []operator, opt Options) ([]diag.Warning, error) {
	var errs []error
	var warnings []diag.Warning
	for i := range installs {
		in := &installs[i]
		known, err := bundle.Validate(in.b)
		if err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s is not valid:\n%w", in.pin.Bundle, sanitize.Line(in.name()), err))
			continue
		}
		// package needs reports these requirements for the rendered pods
		known = slices.DeleteFunc(known, func(w diag.Warning) bool { return w.Code == "expected-from-outside" })
		objects, more, err := Manifests(in.b, in.pin, opt)
		if err != nil {
			errs = append(errs, in.wrapError(err))
			continue
		}
		for _, w := range diag.PrefixWarnings(in.b.CSV.Name, slices.Concat(known, more)) {
			w.Subject = in.pin.Package // same subject for all installs of a package, so that duplicate warnings can be removed
			warnings = append(warnings, w)
		}
		for _, o := range objects {
			if k8s.IsCRD(o) {
				in.crds = append(in.crds, o)
			} else {
				in.objects = append(in.objects, o)
			}
		}
	}
	return warnings, errors.Join(errs...)
}

func comparePins(a, b lockfile.Pin) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
}

// loadBundles loads the bundle of each pin, using all processors. It returns the operators sorted by namespace
// and package.
func loadBundles(pins []lockfile.Pin, open func(lockfile.Pin) (fs.FS, error)) ([]operator, error) {
	pins = slices.SortedFunc(slices.Values(pins), comparePins)
	missing, broken := make([]error, len(pins)), make([]error, len(pins))
	out := make([]operator, len(pins))
	var work sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, pin := range pins {
		fsys, err := open(pin)
		if err != nil {
			missing[i] = fmt.Errorf("opening bundle %q of %s/%s: %w", pin.Bundle, pin.Namespace, pin.Package, err)
			continue
		}
		turns <- struct{}{}
		work.Go(func() {
			out[i].pin = pin
			out[i].b, broken[i] = loadPinned(fsys, pin)
			<-turns
		})
	}
	work.Wait()
	return out, errors.Join(append(missing, broken...)...)
}

// loadPinned loads the bundle of a pin.
func loadPinned(fsys fs.FS, pin lockfile.Pin) (*bundle.Bundle, error) {
	name := pin.Namespace + "/" + pin.Package
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %q of %s:\n%w", pin.Bundle, sanitize.Line(name), err)
	}
	if b.CSV.Name != pin.Bundle && pin.Bundle != "" {
		return nil, fmt.Errorf("reading bundle %q of %s: contains bundle %q instead", pin.Bundle, name, b.CSV.Name)
	}
	return b, nil
}
