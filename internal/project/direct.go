package project

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/trust"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// A subscription may name a bundle instead of a package, as `operator-sdk run
// bundle` does. It is then the only bundle of a catalog of its own, which lies
// in the namespace of the subscription and is in the lock like any other. Like
// with `run bundle-upgrade`, another bundle named later takes the place of the
// one before, whether it says that it replaces it or not.

// direct is a bundle that a subscription names.
type direct struct {
	key     string          // of the subscription, as it is declared
	content catalog.Content // one package with one bundle
	digest  catalog.Digest  // of the manifests; empty where the image pins them
	broken  error           // why it could not be read; the rest is what the lock says
	pkg     string          // "etcd"
	target  subscription.Subscription
	source  cache.Catalog
}

// directID names the catalog of a subscription's own bundle.
func directID(namespace string, sub subscription.Subscription) catalog.ID {
	return catalog.ID{Namespace: namespace, Name: sub.Name + "-bundle"}
}

// directs opens the bundles that subscriptions name. One that cannot be read
// is broken where the lock holds it, else an error with the place of its name;
// one without the signature that quayside.yaml demands is an error in any case.
func (p *Project) directs(ctx context.Context, set *subscription.Set, locked *lockfile.File, fresh bool) ([]direct, error) {
	var out []direct
	var faults diag.List
	for _, sub := range set.Subscriptions {
		if sub.Bundle == "" {
			continue
		}
		known, inLock := directPin(locked, sub)
		at := locked
		if fresh {
			at = nil
		}
		src := cache.Catalog{Source: source.OfBundle(sub.Bundle), ID: directID(cmp.Or(sub.Namespace, known.Namespace), sub), Pos: sub.At(subscription.FieldBundle)}
		src.At = lockedAt(at, src)
		p.Talk.Progress("reading bundle %s", sub.Bundle)
		d, err := p.direct(ctx, sub, src)
		var unsigned *trust.Error
		switch {
		case err != nil && inLock && !errors.As(err, &unsigned):
			d = direct{key: sub.Key(), broken: err, pkg: known.Package, target: sub, source: src}
			d.target.Namespace = known.Namespace
		case err != nil:
			faults.Add(src.Pos, fmt.Errorf("bundle %q: %w", sub.Bundle, err))
			continue
		}
		out = append(out, d)
	}
	p.Talk.Done()
	return out, faults.Err()
}

// directPin returns the pin of a bundle that the lock already holds.
func directPin(lock *lockfile.File, sub subscription.Subscription) (lockfile.Pin, bool) {
	if lock == nil {
		return lockfile.Pin{}, false
	}
	for _, p := range lock.Pins {
		if p.Catalog.ID == directID(p.Namespace, sub) && (sub.Namespace == "" || sub.Namespace == p.Namespace) && p.Catalog.Source == lockfile.SourceName(string(source.OfBundle(sub.Bundle))) {
			return p, true
		}
	}
	return lockfile.Pin{}, false
}

// direct reads one bundle.
func (p *Project) direct(ctx context.Context, sub subscription.Subscription, src cache.Catalog) (direct, error) {
	d := direct{key: sub.Key(), target: sub, source: src}
	c, err := source.Open(ctx, p.Place(), src.At)
	if err != nil {
		return d, err
	}
	defer c.Close()
	if !c.IsBundles() {
		return d, fmt.Errorf("it is a catalog: name it under spec.catalogs, and the package in spec.package")
	}
	if d.content, err = c.Content(ctx); err != nil {
		return d, diag.Below(cmp.Or(src.Source.Prefix(), string(src.Source)), err)
	}
	if n := len(d.content.Packages); n != 1 || len(d.content.Packages[0].Bundles) != 1 {
		return d, fmt.Errorf("want a directory with one bundle (manifests/ and metadata/)")
	}
	one := &d.content.Packages[0]
	d.pkg = one.Name
	if d.content.Digest, err = c.Digest(); err != nil {
		return d, err
	}
	if err := d.tie(ctx, c, &one.Bundles[0]); err != nil {
		return d, err
	}
	if d.target.Namespace, err = homeOf(sub, one); err != nil {
		return d, err
	}
	d.source.ID = directID(d.target.Namespace, sub)
	d.content.Warnings = nil // that a channel has gaps says nothing of one bundle
	d.source.Fill(&d.content)
	return d, nil
}

// tie ties the bundle to its content: by the digest of its image, or of its
// manifests.
func (d *direct) tie(ctx context.Context, c *source.Catalog, b *catalog.BundleData) error {
	if _, remote := d.source.Source.Remote(); remote {
		ref, err := registry.ParseSource(string(d.source.Source))
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
	ms, err := bundle.Manifests(fsys)
	if err != nil {
		return err
	}
	d.digest = catalog.DigestOf(bundle.DigestList(ms))
	return nil
}

// homeOf returns the install namespace of a bundle that a subscription names.
func homeOf(sub subscription.Subscription, pkg *catalog.PackageData) (string, error) {
	annotations := pkg.Bundles[0].Metadata.Annotations
	switch {
	case sub.Namespace != "":
		return sub.Namespace, nil
	case sub.Dialect == subscription.V1:
		return olm.ManagedNamespace(pkg.Name, annotations)
	}
	return cmp.Or(SuggestedNamespace(annotations), pkg.Name), nil
}

// SuggestedNamespace returns the namespace that a bundle wants to be installed
// in, or nothing.
func SuggestedNamespace(annotations map[string]string) string {
	if ns := annotations[olm.SuggestedNamespace]; ns != "" {
		return ns
	}
	var template struct {
		Metadata struct{ Name string }
	}
	if json.Unmarshal([]byte(annotations[olm.SuggestedNamespaceTemplate]), &template) != nil {
		return "" // rendering says what is wrong with it
	}
	return template.Metadata.Name
}

// withDirects returns set with what the bundles say of their subscriptions:
// package, namespace and catalog. The error is a diag.List of those that are
// then declared twice.
func withDirects(set *subscription.Set, ds []direct) (*subscription.Set, error) {
	if len(ds) == 0 {
		return set, nil
	}
	byKey := map[string]direct{}
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
	slices.SortStableFunc(out.Subscriptions, func(a, b subscription.Subscription) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return &out, faults.Err()
}

// FromLock returns set with what the lock says of subscriptions that name a
// bundle, or that leave their namespace to it, for who reads no bundle.
func FromLock(set *subscription.Set, lock *lockfile.File) (*subscription.Set, error) {
	var ds []direct
	for _, sub := range set.Subscriptions {
		if p, ok := directPin(lock, sub); ok && sub.Bundle != "" {
			d := direct{key: sub.Key(), target: sub, pkg: p.Package, source: cache.Catalog{ID: p.Catalog.ID}}
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
	return withDirects(&out, ds)
}

// putDirects puts the catalogs of the bundles on the shelf.
func putDirects(sh *cache.Shelf, ds []direct) error {
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

// refreshed returns lock with the pins of bundles that still have the same name
// and other content, and says which: what is declared is the bundle as it is.
// What is held stays, and what is Manual unless opt names it.
func refreshed(lock *lockfile.File, ds []direct, opt resolve.Options) (*lockfile.File, []resolve.Reason) {
	if lock == nil {
		return nil, nil
	}
	pins := slices.Clone(lock.Pins)
	var changed []resolve.Reason
	for _, d := range ds {
		i := slices.IndexFunc(pins, func(p lockfile.Pin) bool { return p.Namespace == d.target.Namespace && p.Package == d.pkg })
		if i < 0 || d.broken != nil || d.target.Hold != "" || d.target.Approval == subscription.Manual && names(opt, pins[i]) == nil {
			continue
		}
		fresh := d.repinned(pins[i])
		if fresh.Bundle != pins[i].Bundle || fresh.Checksum() == pins[i].Checksum() {
			continue
		}
		pins[i] = fresh
		changed = append(changed, resolve.Reason{Namespace: fresh.Namespace, Package: fresh.Package, Pos: fresh.Pos, Text: "is pinned with other content than " + d.target.Bundle + " has now"})
	}
	if len(changed) == 0 {
		return lock, nil
	}
	return lock.With(pins), changed
}

// names returns the target that names p; nil where none does.
func names(opt resolve.Options, p lockfile.Pin) *resolve.Target {
	for i, t := range opt.Named {
		if t.Namespace == p.Namespace && t.Package == p.Package {
			return &opt.Named[i]
		}
	}
	return nil
}

// repinned returns p with what the bundle says of itself.
func (d direct) repinned(p lockfile.Pin) lockfile.Pin {
	cat, err := catalog.New(d.content)
	if err != nil {
		return p // which is said where the catalog is put with the others
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
	p.Bundle, p.Version = data.Name, b.Version().String()
	p.Catalog = lockfile.NewCatalog(d.source.ID, string(d.source.Source), d.content.Digest)
	p.Image, p.ContentDigest = b.Image(), d.digest
	p.Properties, p.RelatedImages = b.Properties(), b.RelatedImages()
	return p
}
