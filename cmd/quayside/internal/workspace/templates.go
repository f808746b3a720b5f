package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/format"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// The APIs of a chart depend on its values, so the catalog cannot list the APIs. The objects of a chart can
// depend on the APIs of other operators. The APIs and objects become known only after the resolver has chosen
// the charts. So the resolver runs again whenever a choice has new APIs or objects.

// templateFacts are facts about the pins whose content needs a conversion (see package format).
type templateFacts struct {
	provides  map[bundleKey][]catalog.GVK  // APIs of the contents; for equal bundles with different values, the APIs of all
	templates map[string]lockfile.Template // input of the templates, by key of the pin
	holds     []resolve.Hold               // with KeepGoing: operators whose next content cannot be rendered
}

// bundleKey identifies a bundle in a catalog.
type bundleKey struct {
	catalog     catalog.ID
	pkg, bundle string
}

// withLockedAPIs returns an index in which the bundles of pins provide the APIs that the lock records. The index
// assumes that other versions of these packages provide the same APIs, until one is chosen and read. lock may be nil.
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
	var c *Contents
	var faults diag.List
	for _, p := range res.Partial.Pins {
		of, ok := format.Find(p.Format)
		if !ok {
			continue
		}
		if c == nil {
			var err error
			if c, err = pr.project.Contents(); err != nil {
				return f, err
			}
			defer c.Close()
		}
		pr.project.Log.Progress("reading %s", p.Bundle)
		err := f.add(ctx, pr, c, of, p, offeredAPIs(pr.project.Settings.Provides.APIs, res.Partial, p))
		if err != nil && pr.Options.KeepGoing && !resolve.IsHeld(res.Held, p.Key()) {
			f.holds, err = addUnreadable(pr, f.holds, res.Partial, p, "cannot be rendered", err)
		}
		if err != nil {
			faults.Add(diag.Pos{}, ofOperator(p.Key(), err))
		}
	}
	return f, faults.Err()
}

// ofOperator returns err, prefixed with the name of the operator. It keeps positions and hints.
func ofOperator(operator string, err error) error {
	at, ok := errors.AsType[*diag.Error](err)
	if !ok {
		return fmt.Errorf("%s: %w", operator, err)
	}
	return diag.Hintf(at.Pos, at.Hint, "%s: %s", operator, (&diag.Error{Msg: at.Msg, Err: at.Err}).Error())
}

// offeredAPIs returns the APIs that the cluster of a pin has in addition to the APIs of Kubernetes, sorted.
// The other pins and spec.provides (provided) offer such APIs. An API is "group/version" or "group/version/Kind".
func offeredAPIs(provided []string, lock *lockfile.File, of lockfile.Pin) []string {
	out := slices.Clone(provided)
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

// contentFacts contains the facts about contents that need a conversion. Each content is read once in a run,
// although the resolver runs several times.
type contentFacts struct {
	digests  map[bundleKey]lockfile.Pin // pins with image and content digest
	asked    map[string][]string        // by content and offered APIs
	supports map[string]string          // versions of Kubernetes, by content digest
	excluded map[bundleKey]string       // those of contents that were chosen and do not support a cluster
	provided map[string][]catalog.GVK   // by content and input of the templates
}

func newContentFacts() *contentFacts {
	return &contentFacts{map[bundleKey]lockfile.Pin{}, map[string][]string{}, map[string]string{}, map[bundleKey]string{}, map[string][]catalog.GVK{}}
}

// add adds the facts about one pin. If the content of an unchanged pin can no longer be read, it uses the facts
// in the lock.
func (f *templateFacts) add(ctx context.Context, pr *Problem, c *Contents, of format.Format, p lockfile.Pin, offered []string) error {
	old, _ := pr.Lock.Operator(p.Key())
	p, err := pr.contents.withDigest(ctx, c, p, pr.Lock)
	if err != nil {
		return err
	}
	t := *cmp.Or(p.Template, &lockfile.Template{})
	asked, err := pr.contents.askedAPIs(ctx, c, of, p, offered)
	if err == nil {
		t.APIVersions = asked
		if pr.contents.excludes(p, pr.Options) {
			return nil // the resolver chooses another bundle
		}
	}
	if p.Template != nil {
		f.templates[p.Key()] = t
	}
	p.Template = &t
	isLocked := old.Bundle == p.Bundle && old.BundleDigest() == p.BundleDigest() && old.Format == p.Format && equalTemplates(*cmp.Or(old.Template, &lockfile.Template{}), t)
	switch {
	case isLocked: // even if err is set: t then has the APIs in the lock
		f.addAPIs(p, catalog.Read(old.Properties).Provides)
		return nil
	case err != nil:
		return err
	}
	apis, err := pr.contents.providedAPIs(ctx, c, p)
	f.addAPIs(p, apis)
	return err
}

// withDigest returns a pin with the digest of its content. before is the previous lock; it may be nil.
func (f *contentFacts) withDigest(ctx context.Context, c *Contents, p lockfile.Pin, before *lockfile.File) (lockfile.Pin, error) {
	key := bundleKey{p.Catalog.ID, p.Package, p.Bundle}
	if known, ok := f.digests[key]; ok && p.BundleDigest() == "" {
		p.Image, p.ContentDigest, p.Commit = known.Image, known.ContentDigest, known.Commit
		return p, nil
	}
	p, err := c.AddDigest(ctx, p, before)
	if err == nil {
		f.digests[key] = p
	}
	return p, err
}

// askedAPIs returns the APIs in offered on which the objects of a pin may depend.
func (f *contentFacts) askedAPIs(ctx context.Context, c *Contents, of format.Format, p lockfile.Pin, offered []string) ([]string, error) {
	key := string(p.BundleDigest()) + " " + strings.Join(offered, " ")
	if apis, known := f.asked[key]; known {
		return apis, nil
	}
	files, err := c.openPublished(ctx, p)
	if err != nil {
		return nil, err
	}
	apis, err := of.Asks(files, offered)
	if err == nil {
		f.asked[key] = apis
		var m format.Metadata
		m, err = of.Metadata(files)
		f.supports[string(p.BundleDigest())] = m.Kubernetes
	}
	return apis, err
}

// excludes reports whether the content of a pin, which has been read, excludes the Kubernetes version of a
// cluster that gets the operator, although the catalog allows that version. It returns true only once for each
// bundle. The resolver then runs again and avoids the bundle.
func (f *contentFacts) excludes(p lockfile.Pin, opt resolve.Options) bool {
	versions, key := f.supports[string(p.BundleDigest())], bundleKey{p.Catalog.ID, p.Package, p.Bundle}
	if _, known := f.excluded[key]; known {
		return false
	}
	clusters := opt.Clusters
	if len(clusters) == 0 {
		clusters = []resolve.Cluster{{KubernetesVersion: opt.KubernetesVersion, Gets: func(string) bool { return true }}}
	}
	for _, c := range clusters {
		if c.Gets(p.Key()) && !resolve.SupportsKubernetes(c.KubernetesVersion, versions) {
			f.excluded[key] = versions
			return true
		}
	}
	return false
}

// providedAPIs returns the APIs that the content of a pin provides.
func (f *contentFacts) providedAPIs(ctx context.Context, c *Contents, p lockfile.Pin) ([]catalog.GVK, error) {
	t := cmp.Or(p.Template, &lockfile.Template{})
	key := fmt.Sprintf("%q", []string{p.Key(), string(p.BundleDigest()), t.Release, t.KubernetesVersion, strings.Join(t.APIVersions, " "), string(t.Values)})
	if apis, known := f.provided[key]; known {
		return apis, nil
	}
	b, err := c.Bundle(ctx, p)
	if err != nil {
		return nil, err
	}
	f.provided[key] = b.Provides()
	return f.provided[key], nil
}

func (f *templateFacts) addAPIs(p lockfile.Pin, apis []catalog.GVK) {
	key := bundleKey{p.Catalog.ID, p.Package, p.Bundle}
	all := slices.Concat(f.provides[key], apis)
	slices.SortFunc(all, catalog.GVK.Compare)
	f.provides[key] = slices.Compact(all)
}

// withKubeVersions returns x with the supported Kubernetes versions of the excluded bundles (see excludes). It
// returns x itself if x already has these versions.
func (f *contentFacts) withKubeVersions(x *catalog.Index) (*catalog.Index, error) {
	for key, versions := range f.excluded {
		var err error
		if x, err = x.WithKubeVersions(key.catalog, key.pkg, key.bundle, versions); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// withAPIs returns x with the APIs of the contents. It returns x itself if x already has these APIs.
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

// withTemplates returns a copy of res in which each pin records the input of its templates.
func withTemplates(ctx context.Context, pr *Problem, res *resolve.Result) (*resolve.Result, error) {
	f, err := findTemplates(ctx, pr, res)
	if err != nil || len(f.templates) == 0 {
		return res, err
	}
	with := func(lock *lockfile.File) *lockfile.File {
		if lock == nil {
			return nil
		}
		pins := slices.Clone(lock.Pins)
		for i, p := range pins {
			if t, ok := f.templates[p.Key()]; ok {
				pins[i].Template = &t
			}
		}
		return lock.With(pins)
	}
	out := *res
	out.Lock, out.Partial = with(res.Lock), with(res.Partial)
	return &out, nil
}

// maxTemplateRounds is the maximum number of resolver runs. The resolver runs again if a chosen content
// provides APIs that the index does not list, or cannot be rendered.
const maxTemplateRounds = 10

// resolveTemplates resolves until the APIs of the chosen contents are known. It also returns the index with
// these APIs.
func resolveTemplates(ctx context.Context, pr *Problem, opt resolve.Options) (*resolve.Result, *catalog.Index, error) {
	x := pr.Index
	for rounds := 0; rounds < maxTemplateRounds; rounds++ {
		var err error
		if x, err = pr.contents.withKubeVersions(x); err != nil {
			return nil, x, err
		}
		excluded := len(pr.contents.excluded)
		res, err := resolve.Resolve(x, pr.Declared, pr.Lock, opt)
		if res == nil {
			return nil, x, err
		}
		f, fault := findTemplates(ctx, pr, res)
		if fault == nil && len(f.holds) > 0 {
			if opt, fault = opt.WithHolds(f.holds); fault == nil {
				continue
			}
		}
		if fault == nil && len(pr.contents.excluded) > excluded {
			rounds-- // at most one for each version in the catalogs
			continue
		}
		next, fault2 := f.withAPIs(x)
		if fault = errors.Join(fault, fault2); fault != nil {
			return nil, x, fault
		}
		if next == x {
			return res, x, err
		}
		x = next
	}
	return nil, x, fmt.Errorf("the APIs of the charts depend on each other: they still change after %d rounds", maxTemplateRounds)
}
