package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/cmd/quayside/internal/format"
	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// CheckScope selects parts of a check that not every caller needs.
type CheckScope struct {
	Content   bool // compare the lock with the content of bundles that no readable catalog confirms
	Followers bool // evaluate the rules about the environments that follow the workspace
}

// Check verifies that the lock satisfies the declarations, that it agrees with its catalogs, and
// that its images have the recorded signers. The verdict is never nil. A problem that Check finds
// is an error of type explain.Conflicts, *resolve.StaleError or *DiffersError. In an unattended
// run, conflicts are no errors, and Check also checks the rest of the lock.
func (pr *Problem) Check(ctx context.Context, scope CheckScope) (*resolve.Verdict, error) {
	if pr.Lock == nil {
		return &resolve.Verdict{}, &DiffersError{"no " + LockFile + ": run 'quayside resolve'"}
	}
	if err := pr.checkSources(); err != nil {
		return &resolve.Verdict{}, err
	}
	v, err := resolve.Check(pr.Index, pr.Declared, pr.Lock, pr.Options)
	var conflicts explain.Conflicts
	if err != nil && !(pr.Unattended && errors.As(err, &conflicts)) {
		v.Warnings = pr.project.Waive(v.Warnings)
		return v, pr.blameCatalogs(err)
	}
	v.Warnings = pr.project.Waive(append(v.Warnings, pr.project.reviewWaivers(diag.Resolving, pr.DeclarationWarnings(), v.Warnings)...))
	v.Warnings = append(v.Warnings, pr.project.unusedWaivers(pr.Lock)...)
	v.Stale = append(v.Stale, pr.stale...)
	if !pr.Options.AllowDowngrade {
		lowered, _, notCompared := compareSides(pr.project, pr.Lock)
		v.Stale = append(v.Stale, downgradeReasons(lowered)...)
		v.Warnings = append(v.Warnings, pr.project.Waive(notCompared)...)
	}
	if scope.Content {
		if err := pr.confirm(ctx, v); err != nil {
			return v, err
		}
	}
	broken, err := pr.judgeChecked(ctx, v, scope)
	if err != nil {
		return v, err
	}
	if len(v.Stale) > 0 {
		return v, errors.Join(&resolve.StaleError{Reasons: v.Stale}, broken)
	}
	return v, errors.Join(broken, checkSigners(ctx, &pr.project.Registries, pr.Lock, pr.Unattended))
}

// judgeChecked evaluates the rules about the lock. It adds warnings to v.Warnings, and returns errors as broken.
// The warnings in v about operators that cannot run are replaced by the rules' findings about these operators.
func (pr *Problem) judgeChecked(ctx context.Context, v *resolve.Verdict, scope CheckScope) (broken, err error) {
	unfit, others := splitUnfit(v.Warnings)
	found, err := pr.judgeLock(ctx, pr.Lock, unfit)
	if err != nil {
		return nil, err
	}
	if scope.Followers {
		ofFollowers, err := rules.EvaluateFollowers(pr.project.requestedState(ctx, pr.Declared, pr.Lock))
		if err != nil {
			return nil, err
		}
		found = append(found, ofFollowers...)
	}
	v.Warnings = append(others, found.Warnings()...)
	return AsDiffersErrors(found.Err()), nil
}

// CheckReport is the result of checking a lock, for output as JSON.
type CheckReport struct {
	Lock      string           `json:"lock"`
	UpToDate  bool             `json:"upToDate"` // whether no difference was found, apart from parts that were not checked
	Stale     []resolve.Reason `json:"stale"`
	Unchecked []resolve.Reason `json:"unchecked"`
	Failure

	AllWarnings       []diag.Warning `json:"-"` // all warnings except UncheckedWarnings; never nil
	UncheckedWarnings []diag.Warning `json:"-"` // a warning for each entry of Unchecked
}

// NewCheckReport returns a report of a lock that has not been checked.
func NewCheckReport() CheckReport {
	return CheckReport{Lock: LockFile, Stale: []resolve.Reason{}, Unchecked: []resolve.Reason{}, Failure: NewFailure(), AllWarnings: []diag.Warning{}}
}

// Finish sets UpToDate, and adds err to the report. It does not add a *resolve.StaleError, whose
// reasons are already in Stale.
func (r *CheckReport) Finish(err error) {
	r.UpToDate = err == nil
	r.Add(err)
}

// CheckInto calls Check, and adds the result to a report.
func (pr *Problem) CheckInto(ctx context.Context, scope CheckScope, r *CheckReport) error {
	v, err := pr.Check(ctx, scope)
	r.Stale, r.Unchecked = append(r.Stale, v.Stale...), append(r.Unchecked, v.Unchecked...)
	r.AllWarnings = append(append(r.AllWarnings, pr.DeclarationWarnings()...), v.Warnings...)
	for _, u := range v.Unchecked {
		r.UncheckedWarnings = append(r.UncheckedWarnings, diag.Warning{Pos: u.Pos, Code: "not-checked", Msg: "not checked: " + u.Sentence()})
	}
	r.UncheckedWarnings = pr.project.Waive(r.UncheckedWarnings)
	return err
}

// checkSources returns an *InputError for each unreadable catalog whose declared source differs
// from the locked source. The pins from such a catalog cannot be checked.
func (pr *Problem) checkSources() error {
	if pr.Lock == nil {
		return nil
	}
	var faults diag.List
	for _, c := range pr.catalogs {
		i := slices.IndexFunc(pr.Lock.Catalogs(), func(l lockfile.Catalog) bool {
			return l.ID == c.ID && l.Source != lockfile.SourceName(string(c.Source))
		})
		if i < 0 {
			continue
		}
		for _, f := range catalogFaults(pr.Index, func(id catalog.ID) bool { return id == c.ID }) {
			f.Hint = fmt.Sprintf("correct the source: %s has operators from %s", LockFile, pr.Lock.Catalogs()[i].Source)
			faults = append(faults, f)
		}
	}
	if err := faults.Err(); err != nil {
		return &InputError{err}
	}
	return nil
}

// confirm checks entries of v.Unchecked against the content of the bundles. It removes equal fields
// from v.Unchecked, and moves differing fields to v.Stale.
func (pr *Problem) confirm(ctx context.Context, v *resolve.Verdict) error {
	if err := pr.unreadable.Err(); err != nil {
		return &InputError{err}
	}
	c, err := pr.project.Contents()
	if err != nil {
		return err
	}
	defer c.Close()
	before := v.Unchecked
	v.Unchecked = nil
	for _, pin := range pr.lost {
		if cat, ok := pr.Index.Catalog(pin.Catalog.ID); ok && cat.Digest() == pin.Catalog.Digest {
			v.Stale = append(v.Stale, resolve.Reason{
				Namespace: pin.Namespace, Package: pin.Package,
				Text: "is pinned at " + pin.Bundle + ", which its catalog has not had",
			}.WithFields([]string{"bundle"}, pin.Fields, pin.Pos))
			continue
		}
		v.Unchecked = append(v.Unchecked, resolve.Reason{
			Pos: pin.Pos, Namespace: pin.Namespace, Package: pin.Package,
			Text: "is pinned with content that its catalog no longer has: " + pr.project.Settings.OutputDir() + " was not compared with the lock",
		})
	}
	for _, r := range before {
		pin, ok := pr.Lock.Pin(r.Namespace, r.Package)
		if ok && !slices.ContainsFunc(pr.lost, func(l lockfile.Pin) bool { return l.Key() == pin.Key() }) && slices.ContainsFunc(r.Fields, func(f resolve.Field) bool { return isBundleField(f.Name) }) {
			r = pr.confirmPin(ctx, c, pin, r, v)
		}
		if len(r.Fields) > 0 {
			v.Unchecked = append(v.Unchecked, r)
		}
	}
	return nil
}

// isBundleField reports whether the value of a pin's field comes from the content of the bundle.
func isBundleField(field string) bool {
	return field == "bundle" || field == "version" || field == "properties" || field == "relatedImages"
}

// confirmPin compares the fields in r with the content of the pinned bundle. It adds differing
// fields to v.Stale, and returns r with the fields that are still unchecked. If the content is
// unreadable, it returns r unchanged; rendering reports the error.
func (pr *Problem) confirmPin(ctx context.Context, c *Contents, pin lockfile.Pin, r resolve.Reason, v *resolve.Verdict) resolve.Reason {
	content, err := readPin(ctx, pr.contents, c, pin)
	if err != nil {
		return r
	}
	properties, images := propertyTexts(content.Properties), content.RelatedImages
	named := content.Bundle != ""
	wrong := map[string]bool{
		"bundle":        named && content.Bundle != pin.Bundle,
		"version":       named && content.Version != pin.Version,
		"properties":    lacks(propertyTexts(pin.Properties), properties),
		"relatedImages": lacks(pin.RelatedImages, images),
	}
	unconfirmed := map[string]bool{
		"bundle":        !named,
		"version":       !named,
		"properties":    lacks(properties, propertyTexts(pin.Properties)),
		"relatedImages": lacks(append(images, catalog.RelatedImage{Image: pin.Image}), pin.RelatedImages),
	}
	var unchecked, differing []string
	for _, f := range r.Fields {
		switch {
		case wrong[f.Name]:
			differing = append(differing, f.Name)
		case unconfirmed[f.Name] || !isBundleField(f.Name):
			unchecked = append(unchecked, f.Name)
		}
	}
	if len(differing) > 0 {
		stale := resolve.Reason{Namespace: r.Namespace, Package: r.Package, Text: "differs from its bundle"}
		v.Stale = append(v.Stale, stale.WithFields(differing, pin.Fields, pin.Pos))
	}
	return r.WithFields(unchecked, pin.Fields, pin.Pos)
}

// readPin returns a pin with only the fields that come from the content of the given pin. The field
// Bundle is empty if the content lacks the bundle's name and version.
func readPin(ctx context.Context, facts *contentFacts, c *Contents, pin lockfile.Pin) (p lockfile.Pin, err error) {
	if of, ok := format.Find(pin.Format); ok {
		files, err := c.openPublished(ctx, pin)
		if err != nil {
			return p, err
		}
		meta, err := of.Metadata(files)
		if err != nil {
			return p, err
		}
		apis, err := facts.providedAPIs(ctx, c, pin)
		if err != nil {
			return p, err
		}
		p = lockfile.Pin{Bundle: meta.Bundle, Version: meta.Version, Properties: []catalog.Property{catalog.PackageProperty(pin.Package, cmp.Or(meta.Version, pin.Version))}}
		for _, api := range apis {
			p.Properties = append(p.Properties, catalog.GVKProperty(api))
		}
		return lockfile.New([]lockfile.Pin{p}).Pins[0], nil
	}
	fsys, err := c.Open(ctx, pin)
	if err != nil {
		return p, err
	}
	content, err := bundledir.LoadFS(fsys)
	if err != nil {
		return p, err
	}
	for _, pkg := range content.Packages {
		for _, b := range pkg.Bundles {
			p = lockfile.Pin{Bundle: b.Name, Version: catalog.Read(b.Properties).Version, Properties: b.Properties, RelatedImages: b.RelatedImages}
		}
	}
	return lockfile.New([]lockfile.Pin{p}).Pins[0], nil
}

// propertyTexts returns each property as text, for comparison.
func propertyTexts(ps []catalog.Property) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Type+" "+string(p.Value))
	}
	return out
}

// lacks reports whether an element of want is missing in list.
func lacks[T comparable](list, want []T) bool {
	return slices.ContainsFunc(want, func(t T) bool { return !slices.Contains(list, t) })
}
