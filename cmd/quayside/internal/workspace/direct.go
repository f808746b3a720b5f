package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/trust"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// A subscription can name a bundle instead of a package, as with 'operator-sdk run bundle'. The
// resolver then gets a catalog that contains only this bundle, in the namespace of the
// subscription. A new bundle replaces the previous one even without spec.replaces, as with
// 'operator-sdk run bundle-upgrade'.

// directBundle is a bundle that a subscription names.
type directBundle struct {
	key     string          // key of the subscription
	content catalog.Content // catalog with only this package and bundle
	digest  catalog.Digest  // digest of the manifests; empty for a bundle in an image
	broken  error           // error of reading the bundle; pkg and target.Namespace are then from the lock, and content is empty
	pkg     string          // package, such as "etcd"
	target  declare.Subscription
	source  cache.CatalogSpec
}

// directID returns the ID of the catalog for the bundle that a subscription names.
func directID(namespace string, sub declare.Subscription) catalog.ID {
	return catalog.ID{Namespace: namespace, Name: sub.Name + "-bundle"}
}

// openDirectBundles opens the bundles that subscriptions name. An unreadable bundle is marked as
// broken if the lock pins it; otherwise it is an error with the position of the subscription. A
// missing required signature is always an error, except in an unattended run.
func openDirectBundles(ctx context.Context, p *Registries, set *declare.Set, locked *lockfile.File, req Request) ([]directBundle, error) {
	var out []directBundle
	var faults diag.List
	for _, sub := range set.Subscriptions {
		if sub.Bundle == "" {
			continue
		}
		known, inLock := directPin(locked, sub)
		at := locked
		if req.Fresh {
			at = nil
		}
		src := cache.CatalogSpec{Source: source.BundleRef(sub.Bundle), ID: directID(cmp.Or(sub.Namespace, known.Namespace), sub), Pos: sub.At(declare.FieldBundle)}
		src.At = lockedRef(at, src)
		p.Log.Progress("reading bundle %s", sub.Bundle)
		d, err := openDirectBundle(ctx, p, sub, src)
		var unsigned *trust.Error
		switch {
		case err != nil && inLock && (req.Unattended || !errors.As(err, &unsigned)):
			d = directBundle{key: sub.Key(), broken: err, pkg: known.Package, target: sub, source: src}
			d.target.Namespace = known.Namespace
		case err != nil:
			faults.Add(src.Pos, fmt.Errorf("bundle %q: %w", sub.Bundle, err))
			continue
		}
		out = append(out, d)
	}
	p.Log.Done()
	return out, faults.Err()
}

// directPin returns the pin of the bundle that a subscription names, and whether the lock has one.
// lock may be nil.
func directPin(lock *lockfile.File, sub declare.Subscription) (lockfile.Pin, bool) {
	if lock == nil {
		return lockfile.Pin{}, false
	}
	for _, p := range lock.Pins {
		if p.Catalog.ID == directID(p.Namespace, sub) && (sub.Namespace == "" || sub.Namespace == p.Namespace) && p.Catalog.Source == lockfile.SourceName(string(source.BundleRef(sub.Bundle))) {
			return p, true
		}
	}
	return lockfile.Pin{}, false
}

func openDirectBundle(ctx context.Context, p *Registries, sub declare.Subscription, src cache.CatalogSpec) (directBundle, error) {
	d := directBundle{key: sub.Key(), target: sub, source: src}
	c, err := source.Open(ctx, p.Resolver(), src.At)
	if err != nil {
		return d, err
	}
	defer c.Close()
	if !c.IsBundles() && !c.IsOne() {
		return d, fmt.Errorf("the source is a catalog, not a bundle: add it to spec.catalogs, and set spec.package")
	}
	if d.content, err = c.Content(ctx); err != nil {
		return d, diag.PrefixPositions(cmp.Or(src.Source.Prefix(), string(src.Source)), err)
	}
	if n := len(d.content.Packages); n != 1 || len(d.content.Packages[0].Bundles) != 1 {
		return d, fmt.Errorf("expected a directory with one bundle (manifests/ and metadata/), one chart (Chart.yaml), or YAML files at PACKAGE/VERSION")
	}
	pkg := &d.content.Packages[0]
	d.pkg = pkg.Name
	if d.content.Digest, err = c.Digest(); err != nil {
		return d, err
	}
	if err := d.setDigest(ctx, c, &pkg.Bundles[0]); err != nil {
		return d, err
	}
	if d.target.Namespace, err = installNamespace(sub, pkg); err != nil {
		return d, err
	}
	d.source.ID = directID(d.target.Namespace, sub)
	d.content.Warnings = nil // warnings about missing channel entries do not matter for a single bundle
	d.source.Fill(&d.content)
	return d, nil
}

// NamedBundle is a bundle that a declaration can name.
type NamedBundle struct {
	Ref       string // value of spec.bundle
	Package   string
	Namespace string                // install namespace that it suggests, or else the name of the package
	Modes     []catalog.InstallMode // supported install modes; nil: unknown
}

// ReadNamedBundle reads the bundle in a directory, an OCI layout or an image. Paths are relative to the
// workspace.
func ReadNamedBundle(ctx context.Context, p *Project, text string) (NamedBundle, error) {
	arg, err := p.ParseArgument(text)
	if err != nil {
		return NamedBundle{}, err
	}
	out := NamedBundle{Ref: arg.Image}
	if arg.Files != nil {
		out.Ref = "dir:" + strings.TrimPrefix(path.Clean(strings.TrimPrefix(text, "dir:")), "./")
	}
	sub := declare.Subscription{Dialect: declare.Quayside, Bundle: out.Ref}
	d, err := openDirectBundle(ctx, &p.Registries, sub, cache.CatalogSpec{Source: source.BundleRef(out.Ref), At: source.BundleRef(out.Ref)})
	if err != nil {
		return NamedBundle{}, err
	}
	out.Package, out.Namespace = d.pkg, d.target.Namespace
	out.Modes = d.content.Packages[0].Bundles[0].Metadata.InstallModes
	return out, nil
}

// setDigest sets the digest of the image in b. If the bundle is not in a registry, it sets the
// digest of the manifests in d instead.
func (d *directBundle) setDigest(ctx context.Context, c *source.OpenedCatalog, b *catalog.BundleData) error {
	if d.source.Source.IsRemote() {
		ref, err := oci.ParseReference(string(d.source.Source))
		if err != nil {
			return err
		}
		b.Image, b.Embedded = ref.Name+"@"+string(d.content.Digest), false
		b.RelatedImages = append([]catalog.RelatedImage{{Image: b.Image}}, b.RelatedImages...)
		return nil
	}
	fsys, err := c.Bundle(ctx, d.pkg, b.Name, nil)
	if err != nil {
		return err
	}
	ms, err := readManifests(lockfile.Pin{Format: b.Format}, fsys)
	if err != nil {
		return err
	}
	d.digest = catalog.DigestOf(bundle.DigestList(ms))
	return nil
}

// installNamespace returns the install namespace for a bundle that a subscription names.
func installNamespace(sub declare.Subscription, pkg *catalog.PackageData) (string, error) {
	annotations := pkg.Bundles[0].Metadata.Annotations
	switch {
	case sub.Namespace != "":
		return sub.Namespace, nil
	case sub.Dialect == declare.V1:
		return catalog.ManagedNamespace(pkg.Name, annotations)
	}
	return cmp.Or(SuggestedNamespace(annotations), pkg.Name), nil
}

// SuggestedNamespace returns the install namespace that a bundle suggests in its annotations, or
// "".
func SuggestedNamespace(annotations map[string]string) string {
	if ns := annotations[catalog.SuggestedNamespace]; ns != "" {
		return ns
	}
	var template struct {
		Metadata struct{ Name string }
	}
	if json.Unmarshal([]byte(annotations[catalog.SuggestedNamespaceTemplate]), &template) != nil {
		return "" // rendering reports the error
	}
	return template.Metadata.Name
}

// withDirectBundles returns a copy of set in which each subscription that names a bundle has the
// package, namespace and catalog of the bundle. It is an error if two subscriptions become equal.
func withDirectBundles(set *declare.Set, ds []directBundle) (*declare.Set, error) {
	if len(ds) == 0 {
		return set, nil
	}
	byKey := map[string]directBundle{}
	for _, d := range ds {
		byKey[d.key] = d
	}
	out := *set
	out.Subscriptions = slices.Clone(set.Subscriptions)
	var faults diag.List
	at := map[string]diag.Pos{}
	for i := range out.Subscriptions {
		sub := &out.Subscriptions[i]
		if d, ok := byKey[sub.Key()]; ok && sub.Bundle != "" {
			id := d.source.ID
			sub.Namespace, sub.Package, sub.Catalog = d.target.Namespace, d.pkg, &id
		}
		if first, twice := at[sub.Key()]; twice {
			faults.Addf(sub.Pos, "subscription %q is declared twice, first at %s", sub.Key(), first)
		}
		at[sub.Key()] = sub.Pos
	}
	slices.SortStableFunc(out.Subscriptions, func(a, b declare.Subscription) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return &out, faults.Err()
}

// CompleteFromLock returns set with namespaces and packages from the lock, without opening bundles.
// It sets the package and namespace of a subscription that names a bundle. For any other
// subscription, it sets only a missing namespace.
func CompleteFromLock(set *declare.Set, lock *lockfile.File) (*declare.Set, error) {
	var ds []directBundle
	for _, sub := range set.Subscriptions {
		if p, ok := directPin(lock, sub); ok && sub.Bundle != "" {
			d := directBundle{key: sub.Key(), target: sub, pkg: p.Package, source: cache.CatalogSpec{ID: p.Catalog.ID}}
			d.target.Namespace = p.Namespace
			ds = append(ds, d)
		}
	}
	out := *set
	out.Subscriptions = slices.Clone(set.Subscriptions)
	for i, sub := range out.Subscriptions {
		if p, ok := resolve.PinOf(lock, sub); ok && sub.Namespace == "" && sub.Bundle == "" {
			out.Subscriptions[i].Namespace = p.Namespace
		}
	}
	return withDirectBundles(&out, ds)
}

// addDirectBundles adds one catalog to sh for each bundle in ds.
func addDirectBundles(sh *cache.CatalogSet, ds []directBundle) error {
	for _, d := range ds {
		if d.broken != nil {
			sh.AddBroken(d.source, d.broken)
			continue
		}
		cat, err := catalog.New(d.content)
		if err != nil {
			return diag.Errorf(d.source.Pos, "bundle %q: %w", d.target.Bundle, err)
		}
		sh.Add(d.source, cat)
	}
	return nil
}

// refreshDirect returns lock with new pins for bundles that subscriptions name and whose content changed
// under the same bundle name. changed has a reason for each new pin. Naming a bundle always requests its
// current content. But bundles on hold keep their pins, as do bundles with Manual approval that opt does
// not name. lost lists the kept pins whose content is no longer available. lock may be nil.
func refreshDirect(lock *lockfile.File, ds []directBundle, opt resolve.Options) (out *lockfile.File, changed []resolve.Reason, lost []lockfile.Pin) {
	if lock == nil {
		return nil, nil, nil
	}
	pins := slices.Clone(lock.Pins)
	for _, d := range ds {
		i := slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Namespace == d.target.Namespace && p.Package == d.pkg })
		if i < 0 || d.broken != nil {
			continue
		}
		if d.target.Hold != "" || d.target.Approval == declare.Manual && findTarget(opt, pins[i]) == nil {
			if d.digest != "" && pins[i].ContentDigest != d.digest {
				lost = append(lost, pins[i])
			}
			continue
		}
		fresh := d.repin(pins[i])
		if fresh.Bundle != pins[i].Bundle || fresh.Checksum() == pins[i].Checksum() {
			continue
		}
		pins[i] = fresh
		changed = append(changed, resolve.Reason{Namespace: fresh.Namespace, Package: fresh.Package, Pos: fresh.Pos, Text: "is pinned with content that differs from the current content of " + d.target.Bundle})
	}
	if len(changed) == 0 {
		return lock, nil, lost
	}
	return lock.With(pins), changed, lost
}

// findTarget returns the target in opt.Named for the operator of p, or nil if there is none.
func findTarget(opt resolve.Options, p lockfile.Pin) *resolve.Target {
	for i, t := range opt.Named {
		if t.Namespace == p.Namespace && t.Package == p.Package {
			return &opt.Named[i]
		}
	}
	return nil
}

// repin returns p, updated from the current content of the bundle.
func (d directBundle) repin(p lockfile.Pin) lockfile.Pin {
	cat, err := catalog.New(d.content)
	if err != nil {
		return p // addDirectBundles reports the error
	}
	data := d.content.Packages[0].Bundles[0]
	pkg, _ := cat.Package(d.pkg)
	b, ok := pkg.Bundle(data.Name)
	if !ok {
		return p
	}
	if len(b.Entries()) != 1 || b.Entries()[0].Channel().Name() != p.Channel {
		p.Channel = ""
	}
	p = resolve.WithEntry(p, b)
	p.Catalog = lockfile.NewCatalog(d.source.ID, string(d.source.Source), d.content.Digest)
	p.Bundle, p.Image, p.ContentDigest = data.Name, b.Image(), d.digest
	return p
}
