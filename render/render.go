// Package render turns bundles and the pins of a lock into plain Kubernetes
// manifests, in trees that stock kustomize builds.
//
// It is a pure function of the lock, the options and the bundles' content: it
// reads no file and no clock, knows nothing of subscriptions, and the same
// input gives the same bytes. What a bundle becomes is the list in generators.
//
// A tree looks like this; each directory with a kustomization builds by itself:
//
//	clusters.yaml                     the clusters, and what stands before their directories
//	crds/<package>/                   CRDs, without a kustomization
//	namespaces/<namespace>/           a piece: an install namespace, or one that is declared
//	operators/<namespace>.<package>/  a piece: one object a file, but for the aggregated roles
//	reporter/                         where it is asked for, a piece: the reporter …
//	installations/                    … and what it is to look at, a file a pin, without a kustomization
//	clusters/<name>/…                 where something differs there: the same directories, over these
//	all/, clusters/<name>/all/        where all is applied as one, the list of it
//	argocd/ or flux/<name>/           what a person has the GitOps tool apply once
//	pieces/                           what applies a piece each, which that tool reads
//
// The team's own changes lie beside the tree, in overlays/<cluster>/, and are
// Components of what is in clusters/<cluster>/. Every file depends on one pin or on
// settings alone, but for those in all/.
//
// It promises nothing yet: its exported names may change in any release.
//
// Start from [All], [Manifests] and [StreamOverlay].
package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
)

// Result is everything that a lock renders to.
type Result struct {
	Tree     *filetree.Tree
	Objects  []Rendered     // those of the tree's base, in the order of Path and of the documents in it
	Warnings []diag.Warning // sorted

	tree *tree // for Installations
}

// Brings returns the keys of all objects that an operator ("namespace/package") brings,
// whether it or another one that does has them in the tree.
func (r *Result) Brings(operator string) []Key {
	var out []Key
	for _, in := range slices.Concat(r.tree.installs, r.tree.leaving) {
		if in.name() != operator {
			continue
		}
		for _, o := range slices.Concat(in.objects, in.crds, in.others) {
			out = append(out, o.Key())
		}
	}
	return out
}

// Suggests returns what an operator suggests of its Namespace; "" where it does not.
func (r *Result) Suggests(operator string) string {
	for _, in := range r.tree.installs {
		if in.name() == operator {
			return in.b.CSV.Annotations[olm.SuggestedNamespaceTemplate]
		}
	}
	return ""
}

// Rendered is one object of the tree's base.
type Rendered struct {
	Object  Object
	Path    string // "operators/my-etcd.etcd/deployment-etcd-operator.yaml"
	Refused string // why the cluster will refuse it, for its own definition does; "" where it will not

	operator *opened // nil: of none
}

// opened is a pin with its bundle and what it renders to.
type opened struct {
	pin     lockfile.Pin
	b       *bundle.Bundle
	objects []Object // without CRDs
	crds    []Object
	others  []Object // that the bundle has too, but an install before it renders

	follower string // "namespace/package", where it is leaving
}

// name returns "namespace/package".
func (o opened) name() string { return o.pin.Namespace + "/" + o.pin.Package }

// failed returns why the install does not render, with its name.
func (o opened) failed(err error) error {
	return fmt.Errorf("%s:\n%w", inert.Line("rendering "+o.name()+" ("+o.pin.Bundle+")"), err)
}

// at returns a place in the bundle, whose name comes first.
func (o opened) at(pos diag.Pos) diag.Pos {
	pos.File = path.Join(o.b.CSV.Name, pos.File)
	return pos
}

// csvPos returns the place of the bundle's CSV.
func (o opened) csvPos() diag.Pos { return o.at(diag.Pos{File: o.b.CSV.File}) }

// warn adds a warning.
func (t *tree) warn(pos diag.Pos, subject, code, format string, args ...any) {
	t.warnings = append(t.warnings, diag.Warning{Pos: pos, Subject: subject, Code: code, Msg: fmt.Sprintf(format, args...)})
}

// All renders every pin of the lock, and what is left of operators that others
// follow. open returns the content of a pin's
// bundle; all bundles that cannot be opened are reported at once, and so are
// all faults of all bundles. No argument is changed.
func All(lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error)) (*Result, error) {
	opt, err := opt.defaults()
	if err != nil {
		return nil, err
	}
	installs, err1 := openAll(lock.Pins, open)
	replaced, gone := leavingPins(lock)
	leaving, err2 := openAll(replaced, open)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	for i := range leaving {
		gone, _ := lock.Leaves(leaving[i].name())
		leaving[i].follower = lock.Successor(gone)
	}
	warnings, err1 := renderAll(installs, opt)
	_, err2 = renderAll(leaving, opt) // what is to be known of these was said while they were installed
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	t := &tree{
		opt: opt, installs: installs, leaving: leaving, gone: gone, declared: map[string]lockfile.Namespace{}, files: filetree.New(), warnings: warnings,
		crdDirs: map[string]string{}, chosenBy: map[string][]*opened{}, changes: map[string][]changeable{},
	}
	for _, n := range lock.Namespaces {
		t.declared[n.Name] = n
	}
	if err := t.build(); err != nil {
		return nil, err
	}
	slices.SortFunc(t.objects, func(a, b Rendered) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), a.Object.Key().Compare(b.Object.Key()))
	})
	return &Result{Tree: t.files, Objects: t.objects, Warnings: diag.SortWarnings(t.warnings), tree: t}, nil
}

// leavingPins returns the pins of operators that are replaced, and what is being
// uninstalled.
func leavingPins(lock *lockfile.File) (replaced []lockfile.Pin, gone []lockfile.Leaving) {
	for _, l := range lock.Leaving {
		if l.ReplacedBy == "" {
			l.With = slices.DeleteFunc(slices.Clone(l.With), func(key string) bool {
				ns, pkg, _ := strings.Cut(key, "/")
				_, pinned := lock.Pin(ns, pkg)
				return !pinned
			})
			gone = append(gone, l)
			continue
		}
		replaced = append(replaced, l.Pin)
	}
	return replaced, gone
}

// renderAll fills in the objects of each install. All faults are found.
func renderAll(installs []opened, opt Options) ([]diag.Warning, error) {
	var errs []error
	var warnings []diag.Warning
	for i := range installs {
		in := &installs[i]
		known, err := bundle.Validate(in.b)
		if err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s is not valid:\n%w", in.pin.Bundle, inert.Line(in.name()), err))
			continue
		}
		objects, more, err := Manifests(in.b, in.pin, opt)
		if err != nil {
			errs = append(errs, in.failed(err))
			continue
		}
		for _, w := range diag.WarningsBelow(in.b.CSV.Name, slices.Concat(known, more)) {
			w.Subject = in.pin.Package // it is the same wherever that bundle is installed
			warnings = append(warnings, w)
		}
		for _, o := range objects {
			if kobj.IsCRD(o) {
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

// openAll loads every bundle, in the order of namespace and package, on all
// processors.
func openAll(pins []lockfile.Pin, open func(lockfile.Pin) (fs.FS, error)) ([]opened, error) {
	pins = slices.SortedFunc(slices.Values(pins), comparePins)
	missing, broken := make([]error, len(pins)), make([]error, len(pins))
	out := make([]opened, len(pins))
	l := loader{pool: kobj.NewPool()}
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
			out[i].b, broken[i] = l.load(fsys, pin)
			<-turns
		})
	}
	work.Wait()
	return out, errors.Join(append(missing, broken...)...)
}

// loader loads bundles, whose definitions share what they have in common.
type loader struct {
	mu   sync.Mutex
	pool *kobj.Pool
}

func (l *loader) load(fsys fs.FS, pin lockfile.Pin) (*bundle.Bundle, error) {
	name := pin.Namespace + "/" + pin.Package
	b, err := bundle.Load(fsys)
	if err != nil {
		return nil, fmt.Errorf("reading bundle %q of %s:\n%w", pin.Bundle, inert.Line(name), err)
	}
	if b.CSV.Name != pin.Bundle && pin.Bundle != "" {
		return nil, fmt.Errorf("reading bundle %q of %s: it holds %q", pin.Bundle, name, b.CSV.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, file := range b.Objects {
		if kobj.IsCRD(file.Object) {
			l.pool.Share(file.Object)
		}
	}
	return b, nil
}
