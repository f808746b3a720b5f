package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/model"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Check verifies that the lock satisfies the declarations, agrees with its catalogs, and
// has the recorded signers. With content it also reads the content of bundles that no
// catalog confirms or that a catalog embeds. The verdict is never nil. The error is a
// explain.Conflicts, a *resolve.StaleError or a *DiffersError for problems in the verdict.
func (in *Inputs) Check(ctx context.Context, content bool) (*resolve.Verdict, error) {
	if in.Lock == nil {
		return &resolve.Verdict{}, &DiffersError{"no " + LockFile + ": run 'quayside resolve'"}
	}
	v, err := resolve.Check(in.Index, in.Declared, in.Lock, in.Options)
	if err != nil {
		v.Warnings = in.project.Waive(v.Warnings)
		return v, in.blame(err)
	}
	v.Warnings = in.project.Waive(append(v.Warnings, in.project.reviewWaivers(diag.Resolving, in.AboutDeclared(), v.Warnings)...))
	v.Stale = append(v.Stale, in.stale...)
	v.Stale = append(v.Stale, in.elsewhere()...)
	if !in.Options.AllowDowngrade {
		lowered, _ := in.compareSides(in.Lock)
		v.Stale = append(v.Stale, loweredReasons(lowered)...)
		v.Warnings = append(v.Warnings, in.project.Waive(in.unjudged)...)
	}
	if content {
		if err := in.confirm(ctx, v); err != nil {
			return v, err
		}
	}
	if len(v.Stale) > 0 {
		return v, &resolve.StaleError{Reasons: v.Stale}
	}
	return v, in.project.checkSigned(ctx, in.Lock)
}

// CheckReport is the result of checking a lock, as a document.
type CheckReport struct {
	Lock      string           `json:"lock"`
	InStep    bool             `json:"upToDate"` // no differences found; unchecked parts do not count
	Stale     []resolve.Reason `json:"stale"`
	Unchecked []resolve.Reason `json:"unchecked"`
	Failure

	Said []diag.Warning `json:"-"` // all warnings; not nil
}

// NewCheckReport returns a report of a lock that has not been checked.
func NewCheckReport() CheckReport {
	return CheckReport{Lock: LockFile, Stale: []resolve.Reason{}, Unchecked: []resolve.Reason{}, Failure: NewFailure(), Said: []diag.Warning{}}
}

// Finish adds err to the report, unless it is already covered.
func (r *CheckReport) Finish(err error) {
	r.InStep = err == nil
	r.Add(err)
}

// CheckInto runs Check, adds the result to a report, and logs warnings.
func (in *Inputs) CheckInto(ctx context.Context, content bool, r *CheckReport) error {
	v, err := in.Check(ctx, content)
	r.Stale, r.Unchecked = append(r.Stale, v.Stale...), append(r.Unchecked, v.Unchecked...)
	r.Said = append(append(r.Said, in.AboutDeclared()...), v.Warnings...)
	in.project.Log.Warn(r.Said)
	var unchecked []diag.Warning
	for _, u := range v.Unchecked {
		unchecked = append(unchecked, diag.Warning{Pos: u.Pos, Code: "not-checked", Msg: "not checked: " + u.Sentence()})
	}
	in.project.Log.Warn(in.Waive(unchecked))
	if err == nil {
		in.project.Log.Note("%s is up to date (%s)", LockFile, diag.Count(len(in.Lock.Pins), "operator"))
	}
	return err
}

// elsewhere returns the pins from unreadable catalogs whose declared source has changed.
func (in *Inputs) elsewhere() []resolve.Reason {
	var out []resolve.Reason
	for _, p := range in.Lock.Pins {
		c := p.Catalog
		i := slices.IndexFunc(in.catalogs, func(d cache.Catalog) bool { return d.ID == c.ID })
		if i >= 0 && in.Index.Broken()[c.ID] != nil && lockfile.SourceName(string(in.catalogs[i].Source)) != c.Source {
			r := resolve.Reason{Namespace: p.Namespace, Package: p.Package, Text: fmt.Sprintf("comes from %s, which is declared as %q", c.ID, in.catalogs[i].Source)}
			out = append(out, r.WithFields([]string{"catalog"}, p.Fields, p.Pos))
		}
	}
	return out
}

// confirm compares the lock with the content of its bundles if no readable catalog confirms
// it. Confirmed fields are no longer unchecked; different ones are stale.
func (in *Inputs) confirm(ctx context.Context, v *resolve.Verdict) error {
	c, err := in.project.Contents()
	if err != nil {
		return err
	}
	defer c.Close()
	doubts := v.Unchecked
	v.Unchecked = nil
	for _, r := range doubts {
		pin, ok := in.Lock.Pin(r.Namespace, r.Package)
		if ok && slices.ContainsFunc(r.Fields, func(f resolve.Field) bool { return isBundleField(f.Name) }) {
			r = in.ask(ctx, c, pin, r, v)
		}
		if len(r.Fields) > 0 {
			v.Unchecked = append(v.Unchecked, r)
		}
	}
	for _, pin := range in.Lock.Pins {
		in.embedded(ctx, c, pin, v)
	}
	return nil
}

// isBundleField reports whether the content of a bundle determines a field of its pin.
func isBundleField(field string) bool {
	return field == "bundle" || field == "version" || field == "properties" || field == "relatedImages"
}

// ask compares the fields in r with the content of a bundle, and returns the fields still
// in doubt. Unreadable content confirms nothing; rendering reports the error.
func (in *Inputs) ask(ctx context.Context, c *Contents, pin lockfile.Pin, r resolve.Reason, v *resolve.Verdict) resolve.Reason {
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return r
	}
	said, err := read(fsys)
	if err != nil {
		return r
	}
	properties, images := propertyTexts(said.Properties), said.RelatedImages
	wrong := map[string]bool{
		"bundle":        said.Bundle != pin.Bundle,
		"version":       said.Version != pin.Version,
		"properties":    missing(properties, propertyTexts(pin.Properties)),
		"relatedImages": missing(images, pin.RelatedImages),
	}
	open := map[string]bool{
		"properties":    missing(propertyTexts(pin.Properties), properties),
		"relatedImages": missing(pin.RelatedImages, append(images, model.RelatedImage{Image: pin.Image})),
	}
	var left, otherwise []string
	for _, f := range r.Fields {
		switch {
		case wrong[f.Name]:
			otherwise = append(otherwise, f.Name)
		case open[f.Name] || !isBundleField(f.Name):
			left = append(left, f.Name)
		}
	}
	if len(otherwise) > 0 {
		stale := resolve.Reason{Namespace: r.Namespace, Package: r.Package, Text: "differs from its bundle"}
		v.Stale = append(v.Stale, stale.WithFields(otherwise, pin.Fields, pin.Pos))
	}
	return r.WithFields(left, pin.Fields, pin.Pos)
}

// read returns the fields of a pin that the content of a bundle determines.
func read(fsys fs.FS) (p lockfile.Pin, err error) {
	content, err := bundledir.LoadFS(fsys)
	if err != nil {
		return p, err
	}
	for _, pkg := range content.Packages {
		for _, b := range pkg.Bundles {
			p = lockfile.Pin{Bundle: b.Name, Version: model.Read(b.Properties).Version, Properties: b.Properties, RelatedImages: b.RelatedImages}
		}
	}
	return lockfile.New([]lockfile.Pin{p}).Pins[0], nil
}

// propertyTexts returns the properties as text for comparing.
func propertyTexts(ps []model.Property) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Type+" "+string(p.Value))
	}
	return out
}

// missing reports whether a list has an element that another one does not have.
func missing[T comparable](of, in []T) bool {
	return slices.ContainsFunc(of, func(t T) bool { return !slices.Contains(in, t) })
}

// embedded compares the locked digest of a bundle embedded in a workspace file with the
// file. Rendering would not detect a difference, because it reads the store by digest.
func (in *Inputs) embedded(ctx context.Context, c *Contents, pin lockfile.Pin, v *resolve.Verdict) {
	cat, ok := in.Index.Catalog(pin.Catalog.ID)
	if pin.Image != "" || source.Ref(pin.Catalog.Source).IsRemote() || !ok || cat.Digest() != pin.Catalog.Digest {
		return
	}
	loose := pin
	loose.ContentDigest = ""
	tied, err := c.Tie(ctx, loose, nil)
	if err == nil && tied.ContentDigest != pin.ContentDigest {
		r := resolve.Reason{Namespace: pin.Namespace, Package: pin.Package, Text: "is pinned with content that differs from its catalog"}
		v.Stale = append(v.Stale, r.WithFields([]string{"contentDigest"}, pin.Fields, pin.Pos))
	}
}
