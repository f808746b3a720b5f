// Package extend imports the operators that OLM installed in a cluster, and charts that Flux or Argo CD installed,
// into a workspace: it declares them and pins the installed versions.
//
// Start from [Import].
package extend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	setting "github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// CatalogContent is the source of one of the cluster's catalogs.
type CatalogContent struct {
	Catalog string // "namespace/name", or "name"
	Source  source.Ref
}

// ImportReport is the result of an import.
type ImportReport struct {
	Written   bool               `json:"written"` // false if there was nothing to write, or with --check
	Files     []edit.File        `json:"files"`
	Operators []Imported         `json:"operators"`
	Conflicts []Conflict         `json:"conflicts" doc:"declarations that differ and are not changed"`
	Updates   []Update           `json:"updates" doc:"fields of declarations that differ in the cluster, and that --update changes"`
	Skipped   []Skipped          `json:"skipped" doc:"objects that are not imported"`
	Unread    []snapshot.Unread  `json:"unreadable" doc:"kinds that could not be read"`
	Changes   []workspace.Change `json:"changes" doc:"changes to the lock"`
	Counts    Counts             `json:"counts"`
	Others    int                `json:"notSelected" doc:"number of HelmReleases, and Applications with a chart, that are not selected as operators"`
	Warnings  []diag.Warning     `json:"warnings"`
}

// Imported is an operator that is pinned at its installed bundle.
type Imported struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"` // name of the declaration
	Kind      string   `json:"kind"` // kind of the object in the cluster
	Package   string   `json:"package"`
	Bundle    string   `json:"bundle"`
	Version   string   `json:"version"`
	Image     string   `json:"image,omitempty"` // bundle image, if pinned by image
	Generated bool     `json:"generated"`       // whether OLM created the Subscription, for a dependency
	Notes     []string `json:"notes"`
}

// Conflict is an object of the cluster that the workspace declares differently.
type Conflict struct {
	Object   string `json:"object"` // "Subscription my-etcd/etcd"
	Position string `json:"position"`
	Reason   string `json:"reason"`
	Operator bool   `json:"operator"` // whether the object is a Subscription or a ClusterExtension
}

// Update is a field of a declaration that has another value in the cluster.
type Update struct {
	Object   string `json:"object"` // "Subscription my-etcd/etcd"
	Position string `json:"position"`
	Field    string `json:"field" form:"enum=channel|approval|config|values"`
	From     string `json:"from"` // value in the declaration; empty: not set
	To       string `json:"to"`   // value in the cluster
}

// Counts contains numbers of objects that install operators. Found is the sum of the other fields.
type Counts struct {
	Found     int `json:"found" doc:"Subscriptions, ClusterExtensions, OperatorGroups, catalogs, ClusterServiceVersions without a Subscription, and selected HelmReleases and Applications"`
	Added     int `json:"added"`
	Unchanged int `json:"unchanged"`
	Conflicts int `json:"conflicts"`
	Skipped   int `json:"skipped"`
}

// IsComplete reports whether every operator of the cluster is pinned at the installed bundle.
func (r *ImportReport) IsComplete() bool {
	return !slices.ContainsFunc(r.Skipped, func(l Skipped) bool { return l.Operator }) &&
		!slices.ContainsFunc(r.Conflicts, func(c Conflict) bool { return c.Operator }) && len(r.Unread) == 0
}

// Import declares the operators that are installed in a cluster, and pins the installed versions. contents are
// the sources of catalogs that only the cluster can reach.
//
// Import adds declarations. If update is true, it also changes the channel, the approval and the config in
// existing declarations. It reports other differences as conflicts. It skips an operator that cannot be pinned
// at the installed bundle, and reports the reason. If nothing changes, the Edit is nil.
func Import(ctx context.Context, p *workspace.Project, c *Installations, contents []CatalogContent, update bool) (*edit.Edit, *ImportReport, error) {
	im := importer{project: p, cluster: c, update: update, operators: slices.Clone(c.Operators), skipped: slices.Clone(c.Skipped)}
	var err error
	if im.existing, err = p.DeclarationsIfAny(); err != nil {
		return nil, nil, err
	}
	if im.before, err = p.LockIfAny(); err != nil {
		return nil, nil, err
	}
	if im.to, err = edit.Destination(ctx, p, "", edit.ChooseNone); err != nil {
		return nil, nil, err
	}
	if err := im.configure(contents); err != nil {
		return nil, nil, err
	}
	im.dropConflicting()
	if err := im.findInCatalogs(ctx); err != nil {
		return nil, nil, err
	}
	im.dropConflicting()
	for {
		a, err := im.tryImport(ctx)
		if err != nil {
			return nil, nil, err
		}
		if len(a.reasons) == 0 {
			return im.finish(a)
		}
		im.skip(a.reasons)
	}
}

// importer prepares the edit of an import.
type importer struct {
	project  *workspace.Project
	to       workspace.DeclarationPath
	cluster  *Installations
	update   bool // whether to change existing declarations
	existing *declare.Set
	before   *lockfile.File // nil if there is none

	settings  *setting.Workspace
	config    []byte         // content of quayside.yaml if there is none yet
	operators []Operator     // operators to import
	pins      []lockfile.Pin // pins of the operators that were found in a catalog
	skipped   []Skipped
	conflicts []Conflict // conflicts of operators
}

// configure sets im.settings to the settings of the workspace. Existing settings must already contain the
// catalogs listed in contents. For a new workspace, configure creates settings with these catalogs.
func (im *importer) configure(contents []CatalogContent) error {
	im.settings = im.project.Settings
	var missing []setting.CatalogSettings
	var errs diag.List
	for _, c := range contents {
		have, err := im.identify(c.Catalog)
		if err != nil {
			errs.Add(diag.Pos{}, err)
			continue
		}
		i := slices.IndexFunc(im.settings.Catalogs, func(c setting.CatalogSettings) bool { return c.ID() == have.ID })
		if i < 0 {
			missing = append(missing, setting.CatalogSettings{Namespace: have.Namespace, Name: have.Name, Source: c.Source, Priority: have.Priority})
		} else if is := im.settings.Catalogs[i].Source; is != c.Source {
			errs.Addf(im.settings.At(fmt.Sprintf("spec.catalogs[%d].source", i)), "catalog %s has source %s, but --catalog gives %s", have.ID, is, c.Source)
		}
	}
	if err := errs.Err(); err != nil {
		return err
	}
	missing = im.addChartCatalogs(missing)
	global := im.cluster.globalCatalogNamespaces()
	if im.project.Configured() {
		hidden := slices.DeleteFunc(slices.Clone(global), func(ns string) bool { return slices.Contains(im.settings.GlobalCatalogs, ns) })
		if len(hidden) > 0 {
			at := im.settings.At("spec.globalCatalogNamespaces")
			return diag.Hintf(at, "add "+strings.Join(hidden, ", ")+" to spec.globalCatalogNamespaces, and import again", "global catalog namespaces of the cluster are missing from the workspace: %s", strings.Join(hidden, ", "))
		}
		if len(missing) > 0 {
			items := strings.Split(strings.TrimSpace(setting.CatalogList(missing, "")), "\n- ")
			for i, item := range items {
				items[i] = "{" + strings.ReplaceAll(strings.TrimPrefix(item, "- "), "\n  ", ", ") + "}"
			}
			return diag.Hintf(diag.Pos{}, "add under spec.catalogs, and import again: "+strings.Join(items, ", "),
				"%s does not declare the source of %s", setting.FileName, diag.Count(len(missing), "catalog"))
		}
		return nil
	}
	draft := setting.Draft{Catalogs: missing, KubernetesVersion: im.cluster.s.Version}
	if slices.ContainsFunc(global, func(ns string) bool { return !slices.Contains(im.settings.GlobalCatalogs, ns) }) {
		draft.GlobalCatalogs = global
	}
	im.config = draft.Text()
	var err error
	im.settings, err = setting.Parse(setting.FileName, im.config)
	return err
}

// addChartCatalogs returns missing plus the chart catalogs that the workspace lacks. If the workspace has a
// catalog with the same location but another name, the imported operators use that catalog.
func (im *importer) addChartCatalogs(missing []setting.CatalogSettings) []setting.CatalogSettings {
	declared := im.project.Catalogs(im.existing)
	for i, op := range im.operators {
		if !op.isChart() || slices.ContainsFunc(declared, func(c cache.CatalogSpec) bool { return c.ID == op.Catalog }) {
			continue
		}
		at := slices.IndexFunc(im.cluster.Catalogs, func(c ClusterCatalog) bool { return c.ID == op.Catalog })
		location := im.cluster.Catalogs[at].Source
		if same := slices.IndexFunc(declared, func(c cache.CatalogSpec) bool { return c.Source == location }); same >= 0 {
			im.operators[i].Catalog = declared[same].ID
		} else if !slices.ContainsFunc(missing, func(c setting.CatalogSettings) bool { return c.ID() == op.Catalog }) {
			missing = append(missing, setting.CatalogSettings{Name: op.Catalog.Name, Source: location})
		}
	}
	return missing
}

// identify looks up a catalog of the cluster by "namespace/name" or, if only one catalog has the name, by
// "name".
func (im *importer) identify(name string) (ClusterCatalog, error) {
	var have []string
	var found []ClusterCatalog
	for _, c := range im.cluster.Catalogs {
		have = append(have, c.String())
		if name == c.String() || name == c.Name {
			found = append(found, c)
		}
	}
	slices.Sort(have)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return ClusterCatalog{}, fmt.Errorf("--catalog %s: the cluster has no such catalog (available: %s)%s", name, strings.Join(have, ", "), diag.DidYouMean(name, have))
	default:
		return ClusterCatalog{}, fmt.Errorf("--catalog %s: the cluster has several catalogs with this name: use namespace/%s", name, name)
	}
}

// configFile returns the file of the workspace that configures a catalog, or "".
func (im *importer) configFile(id catalog.ID) string {
	if slices.ContainsFunc(im.settings.Catalogs, func(c setting.CatalogSettings) bool { return c.ID() == id }) {
		return setting.FileName
	}
	return ""
}

// skip removes operators from the import. reasons maps the keys of these operators to the reasons.
func (im *importer) skip(reasons map[string]string) {
	im.operators = slices.DeleteFunc(im.operators, func(op Operator) bool {
		reason, ok := reasons[op.Key()]
		if ok {
			im.skipped = append(im.skipped, op.AsSkipped(reason))
		}
		return ok
	})
}

// dropConflicting removes from the import the operators that cannot be declared, or that the workspace already
// declares differently.
func (im *importer) dropConflicting() {
	conflicting, reasons := map[string]bool{}, map[string]string{}
	for _, op := range im.operators {
		set, err := declare.Parse(op.Namespace+".yaml", yamlnode.Encode(op.Object()))
		if err != nil {
			reasons[op.Key()] = "it cannot be declared: " + firstFault(err)
			continue
		}
		if conflict, _ := im.findConflict(op.Object(), set); conflict != nil {
			im.conflicts = append(im.conflicts, *conflict)
			conflicting[op.Key()] = true
		}
	}
	im.operators = slices.DeleteFunc(im.operators, func(op Operator) bool { return conflicting[op.Key()] })
	im.skip(reasons)
}

// findInCatalogs looks up every operator in its catalog. An operator that is missing there is declared by its
// bundle image. If the image is unknown, the operator is skipped.
func (im *importer) findInCatalogs(ctx context.Context) error {
	if !slices.ContainsFunc(im.operators, im.needsLookup) {
		return nil
	}
	pl, err := im.plan()
	if err != nil {
		return err
	}
	p := im.project.With(im.settings, pl.declared, im.before)
	sh, err := p.OpenCatalogs(ctx, p.Catalogs(pl.declared), workspace.CatalogOptions{Locked: im.before})
	if err != nil {
		return err
	}
	defer sh.Close()
	var names []string
	for _, op := range im.operators {
		names = append(names, op.Package)
	}
	x, err := sh.Pick(ctx, cache.PickNames(names...))
	if err != nil {
		return err
	}
	reasons := map[string]string{}
	for i, op := range im.operators {
		if !im.needsLookup(op) {
			continue
		}
		entry, why := findEntry(x, op)
		if entry == nil {
			im.operators[i], why = declareByImage(op, why)
		} else if pin, ok := installedPin(op, entry); ok {
			im.pins = append(im.pins, pin)
			why = unsupportedModeReason(pin, entry.Bundle().Metadata().InstallModes)
		}
		if why != "" {
			reasons[op.Key()] = why
		}
	}
	im.skip(reasons)
	return nil
}

// needsLookup reports whether an operator must be looked up in the catalogs. This is not necessary if the
// operator is declared by image or already pinned.
func (im *importer) needsLookup(op Operator) bool {
	return !op.ByImage && !isLocked(im.before, op)
}

// isLocked reports whether a lock pins an operator at the installed bundle.
func isLocked(lock *lockfile.File, op Operator) bool {
	if lock == nil {
		return false
	}
	pin, ok := lock.Pin(op.Namespace, op.Package)
	return ok && pin.Bundle == op.Bundle && pin.Subscription() == op.Name
}

// IsPinned reports whether a lock pins every operator of the cluster at the installed bundle.
func (c *Installations) IsPinned(lock *lockfile.File) bool {
	return !slices.ContainsFunc(c.Operators, func(op Operator) bool { return !isLocked(lock, op) })
}

// findEntry returns the catalog entry of an installed operator, or nil and the reason.
func findEntry(x *catalog.Index, op Operator) (*catalog.Entry, string) {
	catalogs := x.CatalogsWith(op.Package)
	if op.Catalog != (catalog.ID{}) {
		c, ok := x.Catalog(op.Catalog)
		if !ok {
			if err := x.Broken()[op.Catalog]; err != nil {
				return nil, fmt.Sprintf("catalog %s cannot be read (%s)", op.Catalog, firstFault(err))
			}
			return nil, fmt.Sprintf("catalog %s is not available", op.Catalog)
		}
		catalogs = []*catalog.Catalog{c}
	}
	why := fmt.Sprintf("no catalog has package %s", op.Package)
	for _, c := range catalogs {
		pkg, ok := c.Package(op.Package)
		if !ok {
			why = fmt.Sprintf("catalog %s no longer has package %s", c.ID(), op.Package)
			continue
		}
		var entry *catalog.Entry
		if entry, why = findEntryInPackage(pkg, op); entry != nil {
			return entry, ""
		}
	}
	return nil, why
}

// findEntryInPackage returns the entry of an installed operator in a package of a catalog. If there is none, it
// returns nil and the reason.
func findEntryInPackage(pkg *catalog.Package, op Operator) (*catalog.Entry, string) {
	id := pkg.Catalog().ID()
	bundle, ok := pkg.Bundle(op.Bundle)
	if !ok {
		return nil, fmt.Sprintf("catalog %s no longer has %s", id, op.Bundle)
	}
	entries := bundle.Entries()
	i := slices.IndexFunc(entries, func(e *catalog.Entry) bool {
		return len(op.Channels) == 0 || slices.Contains(op.Channels, e.Channel().Name())
	})
	if i < 0 {
		return nil, fmt.Sprintf("channel %s of catalog %s no longer has %s", strings.Join(op.Channels, ", "), id, op.Bundle)
	}
	have, want := imageref.DigestIn(bundle.Image()), imageref.DigestIn(op.Image)
	if have != "" && want != "" && have != want {
		return nil, fmt.Sprintf("catalog %s now has another image for %s", id, op.Bundle)
	}
	return entries[i], ""
}

// declareByImage returns a copy of the operator that is declared by its bundle image, or the reason why that is
// impossible. The argument why is the reason why no catalog has the operator.
func declareByImage(op Operator, why string) (Operator, string) {
	switch {
	case op.isChart():
		return op, why
	case op.Kind == "ClusterExtension" || op.Image == "":
		return op, why + ", and its image cannot be found in the cluster"
	case !imageref.Valid(op.Image):
		return op, why + fmt.Sprintf(", and %q from its InstallPlan is not an image", op.Image)
	}
	op.ByImage = true
	op.Notes = append(slices.Clone(op.Notes), "pinned by its image, because "+why)
	if imageref.DigestIn(op.Image) == "" {
		op.Notes = append(op.Notes, "its InstallPlan names the image by tag, and the tag may have moved since the installation")
	}
	return op, ""
}

// installedPin returns an incomplete pin of the installed bundle, which the resolver will complete. If the
// watched namespaces are unknown, it returns false.
func installedPin(op Operator, e *catalog.Entry) (lockfile.Pin, bool) {
	pin := lockfile.Pin{
		Namespace: op.Namespace, Package: op.Package, Bundle: op.Bundle, Version: e.Bundle().Version().String(), RequestedBy: []string{op.Key()},
		Channel: e.Channel().Name(), Catalog: lockfile.Catalog{ID: e.Channel().Package().Catalog().ID()},
	}
	switch {
	case op.Watch != nil && op.Watch[0] != "":
		pin.WatchNamespaces = op.Watch
	case op.Watch == nil && !catalog.SupportsNamespaces(e.Bundle().Metadata().InstallModes, op.Namespace, nil):
		pin.WatchNamespaces = []string{op.Namespace}
	}
	return pin, op.Watch != nil || op.Kind == "ClusterExtension" || op.isChart()
}

// unsupportedModeReason returns the reason why a bundle does not support the watched namespaces of
// a pin, or "".
func unsupportedModeReason(pin lockfile.Pin, modes []catalog.InstallMode) string {
	if catalog.SupportsNamespaces(modes, pin.Namespace, pin.WatchNamespaces) {
		return ""
	}
	return fmt.Sprintf("%s does not support install mode %s, which is needed to watch %s (supported: %s)",
		pin.Bundle, catalog.ModeFor(pin.Namespace, pin.WatchNamespaces), formatNamespaces(olmNamespaces(pin)), edit.FormatModes(modes))
}

// lockWithPins returns the lock with pins of the installed bundles. The resolver keeps these pins.
func (im *importer) lockWithPins() *lockfile.File {
	lock := im.before
	if lock == nil {
		lock = lockfile.New(nil)
	}
	pins := slices.Clone(lock.Pins)
	for _, pin := range im.pins {
		_, known := lock.Pin(pin.Namespace, pin.Package)
		imported := slices.ContainsFunc(im.operators, func(op Operator) bool { return slices.Contains(pin.RequestedBy, op.Key()) })
		if !known && imported {
			pins = append(pins, pin)
		}
	}
	return lock.With(pins)
}

// plan contains the declarations to add.
type plan struct {
	draft     *edit.Draft
	declared  *declare.Set // existing and new declarations
	skipped   []Skipped
	conflicts []Conflict
	updates   []Update
	added     int // number of new objects that install operators
	unchanged int // number of objects that install operators and are declared already
}

func (im *importer) plan() (*plan, error) {
	declarations, left := im.cluster.Objects(im.operators, im.configFile)
	pl := &plan{draft: edit.NewDraft(im.project), skipped: left}
	for _, d := range declarations {
		name := im.to.Path
		if !im.to.IsFile {
			name = path.Join(name, d.File)
		}
		set, err := declare.Parse(name, yamlnode.Encode(d.Object))
		if err != nil {
			return nil, fmt.Errorf("%s cannot be declared: %w", edit.NameOf(d.Object), err)
		}
		switch conflict, declared := im.findConflict(d.Object, set); {
		case conflict != nil:
			pl.conflicts = append(pl.conflicts, *conflict)
		case !declared:
			if _, err := pl.draft.Add(name, d.Object); err != nil {
				return nil, err
			}
			pl.added += installationCount(d.Object.Kind())
		default:
			pl.unchanged += installationCount(d.Object.Kind())
			if err := im.updateDeclaration(pl, d.Object, set); err != nil {
				return nil, err
			}
		}
	}
	var err error
	pl.declared, err = pl.draft.Declared(im.existing)
	return pl, err
}

// installationCount returns 1 for a kind of object that installs operators, otherwise 0.
func installationCount(kind string) int {
	if kind == "Namespace" {
		return 0
	}
	return 1
}

// firstFault returns the first error in err, without its position.
func firstFault(err error) string {
	var list diag.List
	if errors.As(err, &list) && len(list) > 0 {
		return (&diag.Error{Msg: list[0].Msg, Err: list[0].Err}).Error()
	}
	return err.Error()
}

// attempt is the result of resolving a plan.
type attempt struct {
	*plan
	problem    *workspace.Problem
	resolution *workspace.Resolution // nil if there is nothing to declare or pin
	reasons    map[string]string     // by operator key: reason why it is not pinned at the installed bundle
}

// tryImport resolves the planned declarations, with the installed bundles pinned.
func (im *importer) tryImport(ctx context.Context) (*attempt, error) {
	pl, err := im.plan()
	a := &attempt{plan: pl, reasons: map[string]string{}}
	if err != nil || pl.draft.IsEmpty() && len(im.operators) == 0 {
		return a, err
	}
	p := im.project.With(im.settings, pl.declared, im.lockWithPins())
	opt := p.ResolveOptions()
	opt.KeepGoing = true
	a.problem, err = workspace.ReadProblem(ctx, p, workspace.Request{Options: opt})
	var faults diag.List
	if errors.As(err, &faults) {
		for _, f := range faults {
			key, ok := bundleAt(pl.declared, f.Pos)
			if !ok || im.operator(key) == nil {
				return nil, err
			}
			a.reasons[key] = "its bundle cannot be read: " + firstFault(diag.List{f})
		}
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	im.project.Log.Progress("resolving")
	if a.resolution, err = workspace.Resolve(ctx, a.problem); err != nil {
		return nil, err
	}
	a.reasons = im.findMismatches(a.resolution)
	if len(a.reasons) == 0 && a.resolution.Failed != nil {
		return nil, a.resolution.Failed
	}
	return a, nil
}

// bundleAt returns the key of the operator whose declaration specifies a bundle at position pos.
func bundleAt(set *declare.Set, pos diag.Pos) (string, bool) {
	for _, sub := range set.Subscriptions {
		if sub.Bundle != "" && sub.At(declare.FieldBundle) == pos {
			return sub.Key(), true
		}
	}
	return "", false
}

func (im *importer) operator(key string) *Operator {
	i := slices.IndexFunc(im.operators, func(op Operator) bool { return op.Key() == key })
	if i < 0 {
		return nil
	}
	return &im.operators[i]
}

// finish returns the edit and the report of an import.
func (im *importer) finish(a *attempt) (*edit.Edit, *ImportReport, error) {
	e := a.draft.Edit(im.config, a.problem, a.resolution)
	conflicts, left := slices.Concat(im.conflicts, a.conflicts), slices.Concat(im.skipped, a.skipped)
	slices.SortFunc(left, Skipped.Compare)
	r := &ImportReport{
		Files: append([]edit.File{}, e.Files...), Operators: []Imported{}, Conflicts: append([]Conflict{}, conflicts...), Skipped: append([]Skipped{}, left...),
		Unread: append([]snapshot.Unread{}, im.cluster.Unread...), Updates: append([]Update{}, a.updates...), Changes: []workspace.Change{}, Warnings: []diag.Warning{},
		Others: im.cluster.NotSelected, Counts: Counts{Found: im.cluster.Total, Added: a.added, Unchanged: a.unchanged, Skipped: len(left)},
	}
	for _, c := range conflicts {
		kind, _, _ := strings.Cut(c.Object, " ")
		r.Counts.Conflicts += installationCount(kind)
	}
	if a.resolution == nil {
		return nil, r, nil
	}
	lock := a.resolution.Lock
	if len(e.Files) == 0 && im.before != nil && bytes.Equal(lockfile.Format(im.before), lockfile.Format(lock)) {
		e = nil
	}
	var pinChanges []resolve.PinChange
	for _, c := range a.resolution.Changes { // changes by other declarations of the workspace
		namespace, pkg, _ := strings.Cut(c.Operator, "/")
		pinChanges = append(pinChanges, resolve.PinChange{Namespace: namespace, Package: pkg, Why: c.Why, Remaining: c.RemainingHops})
	}
	for _, op := range im.operators {
		pin, _ := pinOf(lock, op)
		v := Imported{
			Namespace: op.Namespace, Name: op.Name, Kind: op.Kind, Package: pin.Package, Bundle: op.Bundle, Version: op.Version,
			Generated: op.Generated, Notes: append([]string{}, op.Notes...),
		}
		if pos, unread := workspace.FindUnread(im.project, op.Namespace, pin.Package); unread && a.added > 0 {
			v.Notes = append(v.Notes, fmt.Sprintf("the repository also declares this operator at %s, which no workspace reads: to keep only that declaration, add its path to spec.declarations, then import again", pos))
		}
		if op.ByImage {
			v.Image = op.Image
		}
		r.Operators = append(r.Operators, v)
		pinChanges = append(pinChanges, resolve.PinChange{Namespace: pin.Namespace, Package: pin.Package, Why: "subscription " + op.Key(), Remaining: a.problem.Hops(pin)})
	}
	r.Changes = append(r.Changes, workspace.Changes(im.before, lock, pinChanges)...)
	r.Warnings = append(r.Warnings, im.project.Waive(diag.SortWarnings(slices.Concat(a.declared.Warnings, a.resolution.Warnings)))...)
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w diag.Warning) bool { return a.added > 0 && w.Code == "no-declarations" })
	return e, r, nil
}
