package workspace

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/internal/overlay"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// migrator plans a Migration. Its paths are relative to the workspace.
type migrator struct {
	*Project
	lock      *lockfile.File
	teamFiles map[string][]byte   // the team's files in the tree
	oldFiles  map[string][]byte   // teamFiles and the rendered files, in the earlier layout
	tree      *layout.Tree        // layout of the rendered tree
	overlays  []*earlierOverlay   // sorted by path
	newPaths  map[string][]string // new paths of the other files, by old path
}

// objects maps the key of each object of a build to its JSON.
type objects map[k8s.Key]string

func (p *Project) newMigrator(ctx context.Context, have *filetree.Tree) (*migrator, error) {
	m := &migrator{Project: p, teamFiles: map[string][]byte{}, newPaths: map[string][]string{}}
	for _, name := range filetree.UserFiles(have, filetree.New()) {
		m.teamFiles[path.Join(p.Settings.Output, name)], _ = have.Get(name)
	}
	var err error
	if m.lock, err = p.NeedLock(); err != nil {
		return nil, err
	}
	res, err := p.RenderPlain(ctx, m.lock)
	if err != nil {
		return nil, err
	}
	m.oldFiles, m.tree, err = renderedFiles(res, m.oldTree())
	maps.Copy(m.oldFiles, m.teamFiles)
	return m, err
}

// oldTree returns the directory of the rendered tree in m.oldFiles. It differs from the directory
// on disk, because the team's files may have the names of rendered files.
func (m *migrator) oldTree() string { return path.Join(m.Settings.Output, generated) }

// renderedFiles returns the files of a rendered tree in a directory.
func renderedFiles(res *render.Result, dir string) (map[string][]byte, *layout.Tree, error) {
	files := map[string][]byte{}
	for name, data := range res.Tree.All() {
		files[path.Join(dir, name)] = data
	}
	tree, err := layout.Read(res.Tree.Names(), res.Tree.Get)
	return files, tree, err
}

// addOverlay plans the move of a kustomization of the earlier layout.
func (m *migrator) addOverlay(name string) error {
	parts := strings.Split(path.Dir(name), "/")[1:]
	top := &earlierOverlay{file: path.Join(m.Settings.Output, name), to: path.Join(m.OverlaysDir(), path.Join(parts...)), cluster: parts[0], reporter: len(parts) > 1}
	top.dir = path.Dir(top.file)
	m.overlays = append(m.overlays, top)
	for _, dir := range []string{top.dir, path.Join(m.OverlaysDir(), top.cluster)} {
		if err := checkPlain(m.files, dir); err != nil {
			return err
		}
	}
	if _, known := m.tree.Cluster(top.cluster); !known {
		return diag.Hintf(diag.Pos{File: top.dir}, "rename the directory to a cluster of spec.clusters, or delete it",
			"cannot move overlay: unknown cluster %q%s", top.cluster, diag.DidYouMean(top.cluster, m.Clusters()))
	}
	var resources []string
	for _, dir := range top.pieces(m.tree) {
		resources = append(resources, filetree.Relative(path.Join(top.dir, generated), path.Join(m.oldTree(), dir)))
	}
	m.oldFiles[path.Join(top.dir, generated, layout.Kustomization)] = yamlnode.Encode(map[string]any{"resources": k8s.Values(resources...)})
	if err := top.parse(m.teamFiles[top.file]); err != nil {
		return err
	}
	dirs, err := m.placeEntries(top)
	if err != nil {
		return err
	}
	return m.split(top, dirs)
}

// pieces returns the directories of a rendered tree that the overlay is applied to.
func (top *earlierOverlay) pieces(tree *layout.Tree) []string {
	cluster, _ := tree.Cluster(top.cluster)
	return slices.DeleteFunc(tree.Pieces(cluster), func(dir string) bool { return (path.Base(dir) == layout.Reporter) != top.reporter })
}

// placeEntries returns the directory below top.to for each entry.
func (m *migrator) placeEntries(top *earlierOverlay) ([]string, error) {
	o := &owners{migrator: m, top: top}
	dirs := make([]string, len(top.entries))
	var faults diag.List
	for i, x := range top.entries {
		var err error
		switch {
		case top.reporter: // the reporter has only one piece
		case x.field == "resources":
			dirs[i] = layout.Resources
		case x.field == "generatorOptions" && m.ByOperator():
			if j := slices.IndexFunc(top.entries, isGenerator); j >= 0 {
				dirs[i], err = o.find(top.entries[j])
			}
		case m.ByOperator() && !m.fitsAll(top, x):
			dirs[i], err = o.find(x)
		}
		faults.Add(yamlnode.At(top.file, x.node), err)
	}
	return dirs, faults.Err()
}

// fitsAll reports whether an entry is valid in the Component that applies to every piece.
func (m *migrator) fitsAll(top *earlierOverlay, x entry) bool {
	if x.field == "components" {
		files, in := m.Repository()
		k, data, err := readKustomization(files, path.Join(in, top.dir, x.node.Value))
		return err == nil && data != nil && checkFitsAll("", "", k, data) == nil
	}
	text, err := top.compose(types.ComponentKind, func(e entry) bool { return e == x })
	var k types.Kustomization
	return err == nil && k.Unmarshal(text) == nil && checkFitsAll("", "", k, text) == nil
}

// owners finds the piece whose objects an entry changes.
type owners struct {
	*migrator
	top        *earlierOverlay
	pieces     map[k8s.Key]string // piece of each rendered object
	full, base objects            // earlier overlay, and the same with only resources and generators
}

// find returns the directory for an entry that changes the objects of a single piece. It compares a
// build with the entry and a build without it, and returns the piece whose objects differ. If
// several pieces differ, or none, it returns an error; a generator that changes no piece belongs to
// the resources.
func (o *owners) find(x entry) (string, error) {
	if err := o.buildAll(); err != nil {
		return "", err
	}
	with, without := o.full, o.base
	var err error
	if isGenerator(x) { // references change with the name of the generated object
		without, err = o.build(func(e entry) bool { return e != x })
	} else {
		with, err = o.build(func(e entry) bool { return e == x || isBase(e) })
	}
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, key := range with.changedKeys(without) {
		if piece, rendered := o.pieces[key]; rendered {
			found[piece] = true
		} else if !isGenerator(x) {
			found[layout.Resources] = true
		}
	}
	names, pos := slices.Sorted(maps.Keys(found)), yamlnode.At(o.top.file, x.node)
	switch {
	case len(names) == 0 && isGenerator(x):
		return layout.Resources, nil
	case len(names) == 0:
		return "", diag.Hintf(pos, "delete it, or correct the names in it", "cannot move %s: no object changes", x)
	case len(names) > 1:
		return "", diag.Hintf(pos, "split it by operator, use a patch with a target, or set spec.gitops.granularity: cluster",
			"cannot move %s: objects of several pieces change: %s", x, strings.Join(names, ", "))
	case strings.Contains(names[0], "/"):
		return "", diag.Hintf(pos, "use a patch with a target", "cannot move %s: piece without an overlay of its own: %s", x, names[0])
	}
	return names[0], nil
}

func isGenerator(x entry) bool {
	return slices.Contains([]string{"configMapGenerator", "secretGenerator", "generators"}, x.field)
}

func isBase(x entry) bool {
	return x.field == "resources" || x.field == "generatorOptions" || isGenerator(x)
}

// buildAll builds each piece, the whole earlier overlay, and the earlier overlay with only its
// resources and generators. It does so only on the first call.
func (o *owners) buildAll() error {
	if o.pieces != nil {
		return nil
	}
	o.pieces = map[k8s.Key]string{}
	for _, dir := range o.top.pieces(o.tree) {
		built, err := o.buildDirs(o.oldFiles, o.oldTree(), dir)
		if err != nil {
			return err
		}
		for key, text := range built {
			if o.pieces[key] = dir; path.Base(path.Dir(dir)) == layout.Operators {
				o.pieces[key] = ownerOf(text, path.Base(dir))
			}
		}
	}
	var err error
	if o.full, err = o.buildDirs(o.oldFiles, "", o.top.dir); err == nil {
		o.base, err = o.build(isBase)
	}
	return err
}

// ownerOf returns the operator for which an object is rendered, according to the object's labels. It
// returns piece if the object has no such labels. A piece may contain several operators.
func ownerOf(text, piece string) string {
	var object k8s.Object
	if json.Unmarshal([]byte(text), &object) == nil {
		labels := k8s.Map(object, "metadata", "labels")
		if ns, pkg := k8s.Text(labels, k8s.LabelNamespace), k8s.Text(labels, k8s.LabelPackage); ns != "" && pkg != "" {
			return ns + "." + pkg
		}
	}
	return piece
}

// build builds the earlier overlay with the rendered objects and the entries that the predicate has
// selects.
func (o *owners) build(has func(entry) bool) (objects, error) {
	list := entry{"resources", 0, scalarNode("resources"), scalarNode(generated)}
	top := earlierOverlay{entries: append([]entry{list}, o.top.entries...)}
	text, err := top.compose(types.KustomizationKind, func(x entry) bool { return x == list || has(x) })
	if err != nil {
		return nil, err
	}
	files := maps.Clone(o.oldFiles)
	files[o.top.file] = text
	return o.buildDirs(files, "", o.top.dir)
}

// changedKeys returns the keys of the objects that differ between a and b, sorted.
func (a objects) changedKeys(b objects) []k8s.Key {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(key k8s.Key, _ string) bool { return a[key] == b[key] })
	return slices.SortedFunc(maps.Keys(all), k8s.Key.Compare)
}

// buildDirs builds directories, relative to base in the workspace, with files in place of the
// tree on disk.
func (m *migrator) buildDirs(files map[string][]byte, base string, dirs ...string) (objects, error) {
	repo, in := m.Repository()
	tree := path.Join(in, m.Settings.Output)
	lookup := func(name string) ([]byte, bool) { data, is := files[filetree.Relative(in, name)]; return data, is }
	kustomizations := overlay.New(overlay.ReplacingSource{Dir: tree, Files: lookup, Base: repository{repo}})
	out := objects{}
	for _, dir := range dirs {
		o, err := kustomizations.Open(path.Join(in, base, dir))
		var built [][]byte
		if err == nil {
			built, err = o.Build()
		}
		if err != nil {
			return nil, diag.MapPositions(err, func(p diag.Pos) diag.Pos { p.File = filetree.Relative(in, p.File); return p })
		}
		for _, data := range built {
			var object k8s.Object
			if err := json.Unmarshal(data, &object); err != nil {
				return nil, err
			}
			out[object.Key()] += string(data)
		}
	}
	return out, nil
}

// repository is the files of a repository.
type repository struct{ fs.FS }

// ReadFile reads a regular file.
func (r repository) ReadFile(name string) ([]byte, error) {
	return ReadFile(source.File{DisplayPath: name, FS: r.FS, Name: name})
}

// ReadLink returns the target of a symbolic link.
func (r repository) ReadLink(name string) (string, error) {
	target, err := fs.ReadLink(r.FS, name)
	return filepath.ToSlash(target), err
}

// verify builds the overlays before and after the migration, and returns an error if the objects of
// a cluster differ.
func (m *migrator) verify(ctx context.Context, out *Migration) error {
	files, tree, err := m.renderMoved(ctx, out)
	if err != nil {
		return err
	}
	var faults diag.List
	for _, top := range m.overlays {
		faults.Add(diag.Pos{File: top.file}, m.checkSameObjects(top, files, tree))
	}
	return faults.Err()
}

// renderMoved renders the lock with the overlays in their new places.
func (m *migrator) renderMoved(ctx context.Context, out *Migration) (map[string][]byte, *layout.Tree, error) {
	opt, err := m.plainOptions()
	if err != nil {
		return nil, nil, err
	}
	var faults diag.List
	moved := filetree.New()
	for name, data := range out.files {
		faults.Add(diag.Pos{File: name}, moved.Add(filetree.Relative(m.OverlaysDir(), name), data))
	}
	for i, c := range opt.Clusters {
		if slices.ContainsFunc(m.overlays, func(top *earlierOverlay) bool { return top.cluster == c.Name }) {
			opt.Clusters[i].Overlays, _, err = listOverlays(moved.FS(), m.OverlaysDir(), c.Name, m.ByOperator(), map[string]bool{})
			faults.Add(diag.Pos{}, err)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, nil, err
	}
	res, err := m.render(ctx, m.lock, opt)
	if err != nil {
		return nil, nil, err
	}
	now, tree, err := renderedFiles(res, m.Settings.Output)
	files := maps.Clone(m.teamFiles)
	maps.Copy(files, now)
	maps.Copy(files, out.files)
	return files, tree, err
}

// checkSameObjects returns an error if a cluster would get other objects than before.
func (m *migrator) checkSameObjects(top *earlierOverlay, files map[string][]byte, tree *layout.Tree) error {
	before, err := m.buildDirs(m.oldFiles, "", top.dir)
	if err != nil {
		return err
	}
	after, err := m.buildDirs(files, m.Settings.Output, top.pieces(tree)...)
	if err != nil {
		return diag.Errorf(diag.Pos{File: top.file}, "cannot move overlay: the result does not build: %w", err)
	}
	if changed := before.changedKeys(after); len(changed) > 0 {
		return diag.Hintf(diag.Pos{File: top.file}, "make the changes independent of their order: overlays of single operators are applied before the overlay of the cluster",
			"cannot move overlay: %s would change, such as %s", diag.Count(len(changed), "object"), changed[0])
	}
	return nil
}
