// Package extend brings what a cluster has installed into a workspace: as
// declarations in files, and as pins of exactly that in the lock.
//
// It adds and never changes: what is declared already stays, and is named where it
// says something else. The lock comes from resolving what is then declared, and
// from nowhere else. Nothing is written before all of it holds.
//
// Start from [New], [Extension.Report] and [Extension.Write].
package extend

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/declare"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// Content says where the content of one of the cluster's catalogs is.
type Content struct {
	Catalog string // "namespace/name", or "name"
	Source  source.Ref
}

// Extension is what a cluster brings into a workspace.
type Extension struct {
	Report Report

	project *project.Project
	texts   map[string][]byte // new content, by path
}

// Report says what comes of every object that says what is installed.
type Report struct {
	Written   bool              `json:"written"` // false: nothing was to be written, or that was not wanted
	Files     []File            `json:"files"`
	Operators []Operator        `json:"operators"`
	Conflicts []Conflict        `json:"conflicts" doc:"what is declared otherwise, and stays so"`
	Left      []declare.Left    `json:"left" doc:"what is not imported"`
	Unread    []snapshot.Unread `json:"unread" doc:"what the cluster would not hand out"`
	Changes   []project.Change  `json:"changes" doc:"to the lock"`
	Counts    Counts            `json:"counts"`
	Warnings  []diag.Warning    `json:"warnings"`
}

// File is a file to which something is added.
type File struct {
	Path    string   `json:"path"`
	New     bool     `json:"new"`     // it was not there
	Objects []string `json:"objects"` // that are added: "Subscription my-etcd/etcd"
}

// Operator is one that is pinned at what is installed.
type Operator struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"` // of the declaration
	Kind      string   `json:"kind"` // of the object in the cluster
	Package   string   `json:"package"`
	Bundle    string   `json:"bundle"`
	Version   string   `json:"version"`
	Image     string   `json:"image,omitempty"` // of the bundle, where it is pinned by itself
	Generated bool     `json:"generated"`       // OLM had subscribed to it, for a dependency
	Notes     []string `json:"notes"`
}

// Conflict is an object that the workspace declares otherwise.
type Conflict struct {
	Object   string `json:"object"` // "Subscription my-etcd/etcd"
	Position string `json:"position"`
	Reason   string `json:"reason"`
	Operator bool   `json:"operator"` // it is a Subscription or a ClusterExtension
}

// Counts add up: every object that says what is installed is in one of them.
type Counts struct {
	Found     int `json:"found" doc:"Subscriptions, ClusterExtensions, OperatorGroups, catalogs, and ClusterServiceVersions that belong to no Subscription"`
	Added     int `json:"added"`
	Unchanged int `json:"unchanged"`
	Conflicts int `json:"conflicts"`
	Left      int `json:"left"`
}

// Print prints what comes of the cluster's objects.
func (r Report) Print(out *terminal.Terminal) {
	for _, f := range r.Files {
		text := f.Path
		if len(f.Objects) > 0 {
			text += ": " + strings.Join(f.Objects, ", ")
		}
		fmt.Fprintf(out, "%s %s\n", out.Sign("+"), inert.Line(text))
	}
	for _, op := range r.Operators {
		text := op.Namespace + "/" + op.Name + ": " + op.Bundle
		if op.Image != "" {
			text += " as " + op.Image
		} else if op.Generated {
			text += " (a dependency)"
		}
		fmt.Fprintf(out, "  %s\n", inert.Line(text))
		for _, note := range op.Notes {
			fmt.Fprintf(out, "      %s\n", inert.Line(note))
		}
	}
	for _, c := range r.Conflicts {
		fmt.Fprintf(out, "%s %s\n", out.Sign("~"), inert.Line(c.Object+" is declared otherwise at "+c.Position+", and stays: "+c.Reason))
	}
	for _, u := range r.Unread {
		fmt.Fprintf(out, "%s %s\n", out.Sign("-"), inert.Line(u.Kind+" cannot be read: "+u.Reason))
	}
	for _, l := range r.Left {
		name := strings.TrimPrefix(l.Namespace+"/"+l.Name, "/")
		fmt.Fprintf(out, "%s %s\n", out.Sign("-"), inert.Line(l.Kind+" "+name+" is not imported: "+l.Reason))
	}
}

// New finds what the snapshot brings into the workspace. Contents say where the
// content of catalogs is that only the cluster can reach.
func New(ctx context.Context, p *project.Project, s *snapshot.Snapshot, contents []Content) (*Extension, error) {
	b := &builder{project: p, found: declare.Read(s), snapshot: s}
	var err error
	if b.existing, err = p.DeclarationsIfAny(); err != nil {
		return nil, err
	}
	if b.before, err = p.LockIfAny(); err != nil {
		return nil, err
	}
	if b.dir, err = b.directory(); err != nil {
		return nil, err
	}
	if err := b.configure(contents); err != nil {
		return nil, err
	}
	if err := b.settle(ctx); err != nil {
		return nil, err
	}
	return b.extension()
}

// Changed reports whether there is anything to write.
func (e *Extension) Changed() bool { return len(e.texts) > 0 }

// Whole reports whether every operator of the cluster is pinned at what is
// installed.
func (e *Extension) Whole() bool {
	return !slices.ContainsFunc(e.Report.Left, func(l declare.Left) bool { return l.Operator }) &&
		!slices.ContainsFunc(e.Report.Conflicts, func(c Conflict) bool { return c.Operator }) && len(e.Report.Unread) == 0
}

// Write puts the files in place, the lock last.
func (e *Extension) Write() error {
	names := slices.Sorted(maps.Keys(e.texts))
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		at := e.project.Path(name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if _, err := filetree.WriteFile(at, e.texts[name]); err != nil {
			return err
		}
	}
	e.Report.Written = true
	return nil
}

func rank(name string) int { return slices.Index([]string{workspace.FileName, project.LockFile}, name) }

// builder finds out what to write.
type builder struct {
	project  *project.Project
	snapshot *snapshot.Snapshot
	found    *declare.Cluster
	existing *subscription.Set
	before   *lockfile.File // nil where there is none
	dir      string         // of the declarations: "subscriptions"

	settings  *workspace.Workspace
	config    []byte // of quayside.yaml, where there is none
	fresh     []fresh
	unchanged int
	conflicts []Conflict
	left      []declare.Left
	lock      *lockfile.File
	changes   []project.Change
	warnings  []diag.Warning
}

// directory returns where declarations are put.
func (b *builder) directory() (string, error) {
	candidates, err := b.project.NewDeclarations("")
	if err != nil {
		return "", err
	}
	var paths []string
	for _, c := range candidates {
		paths = append(paths, c.Path)
	}
	switch {
	case len(candidates) > 1:
		return "", fmt.Errorf("several of spec.declarations can take new declarations (%s): name one in spec.newDeclarations of %s", strings.Join(paths, ", "), workspace.FileName)
	case candidates[0].IsFile:
		return "", fmt.Errorf("%s: spec.declarations names no plain directory to put declarations in: add one, such as subscriptions", workspace.FileName)
	}
	return candidates[0].Path, nil
}

// configure finds the settings: those that are there, or new ones with the catalogs
// of contents.
func (b *builder) configure(contents []Content) error {
	b.settings = b.project.Settings
	var missing []workspace.Catalog
	var errs diag.List
	for _, c := range contents {
		id, err := b.identify(c.Catalog)
		if err != nil {
			errs.Add(diag.Pos{}, err)
			continue
		}
		i := slices.IndexFunc(b.settings.Catalogs, func(have workspace.Catalog) bool { return have.ID() == id })
		if i < 0 {
			missing = append(missing, workspace.Catalog{Namespace: id.Namespace, Name: id.Name, Source: c.Source, Priority: b.priority(id)})
		} else if have := b.settings.Catalogs[i].Source; have != c.Source {
			errs.Addf(b.settings.At(fmt.Sprintf("spec.catalogs[%d].source", i)), "catalog %s is %s here, not %s", id, have, c.Source)
		}
	}
	if err := errs.Err(); err != nil {
		return err
	}
	if b.project.Configured() {
		if len(missing) > 0 {
			return fmt.Errorf("%s does not name the content of %s: add this under spec.catalogs, and import again\n%s",
				workspace.FileName, diag.Count(len(missing), "catalog"), strings.TrimSuffix(string(yamlnode.Encode(listed(missing))), "\n"))
		}
		return nil
	}
	spec := map[string]any{"declarations": []any{b.dir}}
	if len(missing) > 0 {
		spec["catalogs"] = listed(missing)
	}
	b.config = yamlnode.Encode(map[string]any{"apiVersion": workspace.APIVersion, "kind": workspace.Kind, "spec": spec})
	var err error
	b.settings, err = workspace.Parse(workspace.FileName, b.config)
	return err
}

// listed returns catalogs as quayside.yaml has them.
func listed(cats []workspace.Catalog) []any {
	var out []any
	for _, c := range cats {
		m := map[string]any{"name": c.Name, "source": string(c.Source)}
		if c.Namespace != "" {
			m["namespace"] = c.Namespace
		}
		if c.Priority != 0 {
			m["priority"] = int64(c.Priority)
		}
		out = append(out, m)
	}
	return out
}

// identify finds the catalog of the cluster that a person names.
func (b *builder) identify(name string) (catalog.ID, error) {
	var have []string
	var found []catalog.ID
	for _, id := range b.catalogs() {
		have = append(have, id.String())
		if name == id.String() || name == id.Name {
			found = append(found, id)
		}
	}
	slices.Sort(have)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return catalog.ID{}, fmt.Errorf("--catalog %s: the cluster has no such catalog (have %s)%s", name, strings.Join(have, ", "), diag.DidYouMean(name, have))
	default:
		return catalog.ID{}, fmt.Errorf("--catalog %s: the cluster has several of that name: say namespace/%s", name, name)
	}
}

// catalogs returns the catalogs that the cluster has, or that its Subscriptions name.
func (b *builder) catalogs() []catalog.ID {
	var out []catalog.ID
	for _, c := range b.snapshot.CatalogSources() {
		out = append(out, catalog.ID{Namespace: c.Namespace, Name: c.Name})
	}
	for _, o := range b.snapshot.Kind(snapshot.OLMv1, "ClusterCatalog") {
		out = append(out, catalog.ID{Name: o.Name})
	}
	for _, sub := range b.snapshot.Subscriptions() {
		if !slices.Contains(out, sub.Catalog) && sub.Catalog.Name != "" {
			out = append(out, sub.Catalog)
		}
	}
	return out
}

func (b *builder) priority(id catalog.ID) int32 {
	for _, c := range b.snapshot.CatalogSources() {
		if c.Namespace == id.Namespace && c.Name == id.Name {
			return c.Priority
		}
	}
	return 0
}

// settled says where else than in a declaration a catalog's content is named.
func (b *builder) settled(id catalog.ID) string {
	if slices.ContainsFunc(b.settings.Catalogs, func(c workspace.Catalog) bool { return c.ID() == id }) {
		return workspace.FileName
	}
	return ""
}

// extension puts together what was found.
func (b *builder) extension() (*Extension, error) {
	e := &Extension{project: b.project, texts: map[string][]byte{}}
	e.Report = Report{
		Files: []File{}, Operators: []Operator{}, Conflicts: append([]Conflict{}, b.conflicts...), Left: append([]declare.Left{}, b.left...),
		Unread: append([]snapshot.Unread{}, b.snapshot.Unread...), Changes: append([]project.Change{}, b.changes...), Warnings: append([]diag.Warning{}, b.warnings...),
	}
	if b.config != nil {
		e.texts[workspace.FileName] = b.config
		e.Report.Files = append(e.Report.Files, File{Path: workspace.FileName, New: true, Objects: []string{}})
	}
	if err := b.files(e); err != nil {
		return nil, err
	}
	for _, op := range b.found.Operators {
		v := Operator{
			Namespace: op.Namespace, Name: op.Name, Kind: op.Kind, Package: op.Package, Bundle: op.Bundle, Version: op.Version,
			Generated: op.Generated, Notes: append([]string{}, op.Notes...),
		}
		if op.ByItself {
			v.Image = op.Image
		}
		e.Report.Operators = append(e.Report.Operators, v)
	}
	if b.lock != nil {
		text := lockfile.Format(b.lock)
		if b.before == nil || !bytes.Equal(lockfile.Format(b.before), text) {
			e.texts[project.LockFile] = text
		}
	}
	b.count(&e.Report)
	return e, nil
}

// files adds the new declarations to the files.
func (b *builder) files(e *Extension) error {
	for _, f := range b.fresh {
		text, known := e.texts[f.path]
		if !known {
			var there bool
			var err error
			if text, there, err = b.file(f.path); err != nil {
				return err
			}
			e.Report.Files = append(e.Report.Files, File{Path: f.path, New: !there})
		}
		at := &e.Report.Files[slices.IndexFunc(e.Report.Files, func(r File) bool { return r.Path == f.path })]
		at.Objects = append(at.Objects, named(f.Object))
		e.texts[f.path] = yamlnode.Append(text, f.text)
	}
	return nil
}

func (b *builder) count(r *Report) {
	c := &r.Counts
	for _, f := range b.fresh {
		if counted(f.Object.Kind()) {
			c.Added++
		}
	}
	c.Unchanged, c.Left = b.unchanged, len(r.Left)
	for _, conflict := range r.Conflicts {
		if kind, _, _ := strings.Cut(conflict.Object, " "); counted(kind) {
			c.Conflicts++
		}
	}
	c.Found = b.found.Total
}
