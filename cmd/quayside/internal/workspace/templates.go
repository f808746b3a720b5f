package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/format"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// The catalog of a chart does not say which APIs the chart provides: that depends on the values. And
// what a chart renders can depend on the APIs of the other operators. Both are facts about the content
// that the resolver chose, so it resolves again when a fact is new.

// templateFacts are facts about the pins whose content has a format.
type templateFacts struct {
	provides  map[bundleKey][]catalog.GVK  // APIs of the contents: of equal bundles with different values, those of all
	templates map[string]lockfile.Template // input of the templates, by key of the pin
	holds     []resolve.Hold               // with KeepGoing: operators whose next content does not render
}

// bundleKey identifies a bundle in a catalog.
type bundleKey struct {
	catalog     catalog.ID
	pkg, bundle string
}

// withLockedAPIs returns an index in which the bundles of pins provide the APIs that the lock records.
// Other versions of their packages are taken to provide the same APIs, until they are chosen and read.
// lock may be nil.
func withLockedAPIs(x *catalog.Index, lock *lockfile.File) (*catalog.Index, error) {
	if lock == nil {
		return x, nil
	}
	for _, p := range lock.Pins {
		if p.Format == "" {
			continue
		}
		var bundles []string
		if c, ok := x.Catalog(p.Catalog.ID); ok {
			if pkg, ok := c.Package(p.Package); ok {
				for _, b := range pkg.Bundles() {
					bundles = append(bundles, b.Name())
				}
			}
		}
		var err error
		if x, err = x.WithAPIs(p.Catalog.ID, p.Package, bundles, catalog.Read(p.Properties).Provides); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// findTemplates returns the facts about the chosen pins.
func findTemplates(ctx context.Context, pr *Problem, res *resolve.Result) (templateFacts, error) {
	f := templateFacts{provides: map[bundleKey][]catalog.GVK{}, templates: map[string]lockfile.Template{}}
	if !slices.ContainsFunc(res.Partial.Pins, func(p lockfile.Pin) bool { return p.Format != "" }) {
		return f, nil
	}
	c, err := pr.project.Contents()
	if err != nil {
		return f, err
	}
	defer c.Close()
	var faults diag.List
	for _, p := range res.Partial.Pins {
		of, ok := format.Find(p.Format)
		if !ok {
			continue
		}
		pr.project.Log.Progress("reading %s", p.Bundle)
		err := f.add(ctx, pr, c, of, p, pr.offeredAPIs(res.Partial, p))
		if err != nil && pr.Options.KeepGoing && !resolve.IsHeld(res.Held, p.Key()) {
			f.holds, err = addUnreadable(pr, f.holds, res.Partial, p, "cannot be rendered", err)
		}
		if err != nil {
			faults.Add(diag.Pos{}, ofOperator(p.Key(), err))
		}
	}
	pr.project.Log.Done()
	return f, faults.Err()
}

// ofOperator returns an error with the name of the operator. Positions and hints are kept.
func ofOperator(operator string, err error) error {
	at, ok := errors.AsType[*diag.Error](err)
	if !ok {
		return fmt.Errorf("%s: %w", operator, err)
	}
	return diag.Hintf(at.Pos, at.Hint, "%s: %s", operator, (&diag.Error{Msg: at.Msg, Err: at.Err}).Error())
}

// offeredAPIs returns the APIs that the cluster of a pin has in addition to those of Kubernetes: those
// of the other pins, and of spec.provides. Each is "group/version" or "group/version/Kind"; sorted.
func (pr *Problem) offeredAPIs(lock *lockfile.File, of lockfile.Pin) []string {
	out := slices.Clone(pr.project.Settings.Provides.APIs)
	for _, p := range lock.Pins {
		if p.Key() == of.Key() {
			continue
		}
		for _, g := range catalog.Read(p.Properties).Provides {
			out = append(out, g.Group+"/"+g.Version, g.Group+"/"+g.Version+"/"+g.Kind)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// add adds the facts about one pin.
func (f *templateFacts) add(ctx context.Context, pr *Problem, c *Contents, of format.Format, p lockfile.Pin, offered []string) error {
	p, err := c.AddDigest(ctx, p, pr.Lock)
	if err != nil {
		return err
	}
	files, err := c.openPublished(ctx, p)
	if err != nil {
		return err
	}
	t := lockfile.Template{}
	if p.Template != nil {
		t = *p.Template
	}
	if t.APIVersions, err = of.Asks(files, offered); err != nil {
		return err
	}
	p.Template = &t
	f.templates[p.Key()] = t
	if pr.Lock != nil {
		if old, ok := pr.Lock.Pin(p.Namespace, p.Package); ok && old.Bundle == p.Bundle && old.BundleDigest() == p.BundleDigest() && old.Template != nil && equalTemplates(*old.Template, t) {
			f.addAPIs(p, catalog.Read(old.Properties).Provides)
			return nil
		}
	}
	fsys, err := c.expand(ctx, of, files, p)
	if err != nil {
		return err
	}
	b, err := bundle.Load(fsys)
	if err != nil {
		return err
	}
	f.addAPIs(p, b.Provides())
	return nil
}

func (f *templateFacts) addAPIs(p lockfile.Pin, apis []catalog.GVK) {
	key := bundleKey{p.Catalog.ID, p.Package, p.Bundle}
	all := slices.Concat(f.provides[key], apis)
	slices.SortFunc(all, catalog.GVK.Compare)
	f.provides[key] = slices.Compact(all)
}

// withAPIs returns an index with the APIs of the contents. It returns x if it already has them.
func (f *templateFacts) withAPIs(x *catalog.Index) (*catalog.Index, error) {
	for key, apis := range f.provides {
		var err error
		if x, err = x.WithAPIs(key.catalog, key.pkg, []string{key.bundle}, apis); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func equalTemplates(a, b lockfile.Template) bool {
	return a.Release == b.Release && a.KubernetesVersion == b.KubernetesVersion && slices.Equal(a.APIVersions, b.APIVersions) && bytes.Equal(a.Values, b.Values)
}

// withTemplates returns a lock with the templates of its pins.
func (f templateFacts) withTemplates(lock *lockfile.File) *lockfile.File {
	if lock == nil || len(f.templates) == 0 {
		return lock
	}
	pins := slices.Clone(lock.Pins)
	for i, p := range pins {
		if t, ok := f.templates[p.Key()]; ok {
			pins[i].Template = &t
		}
	}
	return lock.With(pins)
}

// maxTemplateRounds limits how often the resolver runs again because the APIs of a content are new.
const maxTemplateRounds = 10

// resolveTemplates resolves until the APIs of the chosen contents are known.
func resolveTemplates(ctx context.Context, pr *Problem, opt resolve.Options) (*resolve.Result, error) {
	x := pr.Index
	for range maxTemplateRounds {
		res, err := resolve.Resolve(x, pr.Declared, pr.Lock, opt)
		if res == nil {
			return nil, err
		}
		f, fault := findTemplates(ctx, pr, res)
		if fault != nil {
			return nil, fault
		}
		if len(f.holds) > 0 {
			if opt, err = opt.WithHolds(f.holds); err != nil {
				return nil, err
			}
			continue
		}
		next, fault := f.withAPIs(x)
		if fault != nil {
			return nil, fault
		}
		if next == x {
			whole := res.Lock == res.Partial
			if res.Partial = f.withTemplates(res.Partial); whole {
				res.Lock = res.Partial
			}
			return res, err
		}
		x = next
	}
	return nil, fmt.Errorf("the APIs of the charts change with those of other charts after %d rounds", maxTemplateRounds)
}
