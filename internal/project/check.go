package project

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/quayside/quayside/bundle/fetch"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// Check says whether the lock answers the declarations, whether it says what
// its catalogs say, and whether what it pins is signed by whom it says. With
// content, the content of the bundles is asked too: for what no catalog
// confirms, and for what a catalog embeds. The verdict is never nil; the error
// is a resolve.Conflicts, a *resolve.StaleError or a *DiffersError for what the
// verdict tells too.
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

// CheckReport is what checking a lock came to, as a document.
type CheckReport struct {
	Lock      string           `json:"lock"`
	InStep    bool             `json:"inStep"` // nothing was found; what could not be checked is no finding
	Stale     []resolve.Reason `json:"stale"`
	Unchecked []resolve.Reason `json:"unchecked"`
	Failure

	Said []diag.Warning `json:"-"` // what was warned of; not nil
}

// NewCheckReport returns one of a lock that was not looked at.
func NewCheckReport() CheckReport {
	return CheckReport{Lock: LockFile, Stale: []resolve.Reason{}, Unchecked: []resolve.Reason{}, Failure: NewFailure(), Said: []diag.Warning{}}
}

// Finish fills in what err says and the rest of the report does not.
func (r *CheckReport) Finish(err error) {
	r.InStep = err == nil
	r.Add(err)
}

// CheckInto is Check, with a report of it, and tells what a person should know.
func (in *Inputs) CheckInto(ctx context.Context, content bool, r *CheckReport) error {
	v, err := in.Check(ctx, content)
	r.Stale, r.Unchecked = append(r.Stale, v.Stale...), append(r.Unchecked, v.Unchecked...)
	r.Said = append(append(r.Said, in.AboutDeclared()...), v.Warnings...)
	in.project.Talk.Warn(r.Said)
	var unchecked []diag.Warning
	for _, u := range v.Unchecked {
		unchecked = append(unchecked, diag.Warning{Pos: u.Pos, Code: "not-checked", Msg: "not checked: " + u.Sentence()})
	}
	in.project.Talk.Warn(in.Waive(unchecked))
	if err == nil {
		in.project.Talk.Note("%s is up to date (%s)", LockFile, diag.Count(len(in.Lock.Pins), "operator"))
	}
	return err
}

// elsewhere returns the pins of catalogs that could not be read, and whose source is
// declared otherwise by now.
func (in *Inputs) elsewhere() []resolve.Reason {
	var out []resolve.Reason
	for _, p := range in.Lock.Pins {
		c := p.Catalog
		i := slices.IndexFunc(in.catalogs, func(d cache.Catalog) bool { return d.ID == c.ID })
		if i >= 0 && in.Index.Broken()[c.ID] != nil && lockfile.SourceName(string(in.catalogs[i].Source)) != c.Source {
			r := resolve.Reason{Namespace: p.Namespace, Package: p.Package, Text: fmt.Sprintf("comes from %s, which is declared as %q", c.ID, in.catalogs[i].Source)}
			out = append(out, r.About([]string{"catalog"}, p.Fields, p.Pos))
		}
	}
	return out
}

// confirm compares the lock with the content of its bundles where no catalog
// that was read confirms what it says. What the content confirms too is no
// longer unchecked; what it says otherwise is stale.
func (in *Inputs) confirm(ctx context.Context, v *resolve.Verdict) error {
	c, err := in.project.contents()
	if err != nil {
		return err
	}
	defer c.Close()
	doubts := v.Unchecked
	v.Unchecked = nil
	for _, r := range doubts {
		pin, ok := in.Lock.Pin(r.Namespace, r.Package)
		if ok && slices.ContainsFunc(r.Fields, func(f resolve.Field) bool { return told(f.Name) }) {
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

// told reports whether the content of a bundle tells a field of its pin.
func told(field string) bool {
	return field == "bundle" || field == "version" || field == "properties" || field == "relatedImages"
}

// ask asks the content of a bundle about what r doubts, and returns what stays
// doubtful. Content that cannot be read confirms nothing: rendering says why.
func (in *Inputs) ask(ctx context.Context, c *fetch.Contents, pin lockfile.Pin, r resolve.Reason, v *resolve.Verdict) resolve.Reason {
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return r
	}
	said, err := read(fsys)
	if err != nil {
		return r
	}
	properties, images := texts(said.Properties), said.RelatedImages
	wrong := map[string]bool{
		"bundle":        said.Bundle != pin.Bundle,
		"version":       said.Version != pin.Version,
		"properties":    missing(properties, texts(pin.Properties)),
		"relatedImages": missing(images, pin.RelatedImages),
	}
	open := map[string]bool{
		"properties":    missing(texts(pin.Properties), properties),
		"relatedImages": missing(pin.RelatedImages, append(images, catalog.RelatedImage{Image: pin.Image})),
	}
	var left, otherwise []string
	for _, f := range r.Fields {
		switch {
		case wrong[f.Name]:
			otherwise = append(otherwise, f.Name)
		case open[f.Name] || !told(f.Name):
			left = append(left, f.Name)
		}
	}
	if len(otherwise) > 0 {
		stale := resolve.Reason{Namespace: r.Namespace, Package: r.Package, Text: "is pinned otherwise than its bundle says"}
		v.Stale = append(v.Stale, stale.About(otherwise, pin.Fields, pin.Pos))
	}
	return r.About(left, pin.Fields, pin.Pos)
}

// read returns what a lock would record of the content of a bundle.
func read(fsys fs.FS) (p lockfile.Pin, err error) {
	content, err := bundledir.LoadFS(fsys)
	if err != nil {
		return p, err
	}
	for _, pkg := range content.Packages {
		for _, b := range pkg.Bundles {
			p = lockfile.Pin{Bundle: b.Name, Version: olm.Read(b.Properties).Version, Properties: b.Properties, RelatedImages: b.RelatedImages}
		}
	}
	return lockfile.New([]lockfile.Pin{p}).Pins[0], nil
}

// texts returns what each property is in the lock.
func texts(ps []catalog.Property) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Type+" "+string(p.Value))
	}
	return out
}

// missing reports whether one of a list is not in another.
func missing[T comparable](of, in []T) bool {
	return slices.ContainsFunc(of, func(t T) bool { return !slices.Contains(in, t) })
}

// embedded compares the digest of a bundle that a file of the workspace embeds
// with what is there: rendering takes the content from the store, by its digest.
func (in *Inputs) embedded(ctx context.Context, c *fetch.Contents, pin lockfile.Pin, v *resolve.Verdict) {
	cat, ok := in.Index.Catalog(pin.Catalog.ID)
	if _, remote := source.Ref(pin.Catalog.Source).Remote(); pin.Image != "" || remote || !ok || cat.Digest() != pin.Catalog.Digest {
		return
	}
	loose := pin
	loose.ContentDigest = ""
	tied, err := c.Tie(ctx, loose, nil)
	if err == nil && tied.ContentDigest != pin.ContentDigest {
		r := resolve.Reason{Namespace: pin.Namespace, Package: pin.Package, Text: "is pinned with other content than its catalog holds"}
		v.Stale = append(v.Stale, r.About([]string{"contentDigest"}, pin.Fields, pin.Pos))
	}
}
