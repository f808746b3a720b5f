package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/layout"
)

// Migration moves the team's own files out of the rendered tree, where an earlier layout had
// them, to the overlays directory.
type Migration struct {
	Moves   []Move `json:"moves" doc:"by old path"`
	Written bool   `json:"written"`

	project *Project
	files   map[string][]byte // contents of the new files, by new path
}

// Move is a file to move. A file that is split or copied has several.
type Move struct {
	From string `json:"from"`
	To   string `json:"to,omitempty" doc:"empty: the file changes nothing and is removed"`
}

// Err returns a *DiffersError if there is something to move.
func (m *Migration) Err() error {
	if len(m.Moves) == 0 {
		return nil
	}
	return errEarlierOverlays()
}

// earlierOverlays returns the team's kustomizations of an earlier layout:
// clusters/<cluster>/kustomization.yaml, and reporter/ below it.
func earlierOverlays(have *filetree.Tree) []string {
	var out []string
	for _, name := range filetree.UserFiles(have, filetree.New()) {
		parts := strings.Split(name, "/")
		if n := len(parts); parts[0] == layout.Clusters && parts[n-1] == layout.Kustomization && (n == 3 || n == 4 && parts[2] == layout.Reporter) {
			out = append(out, name)
		}
	}
	return out
}

// Migrate plans the migration of a workspace. It returns an error if there is no unique place
// for a change, or if the objects of a cluster would change.
func (p *Project) Migrate(ctx context.Context) (*Migration, error) {
	out := &Migration{Moves: []Move{}, project: p, files: map[string][]byte{}}
	have, err := p.Rendered(filetree.New())
	if err != nil {
		return nil, err
	}
	found := earlierOverlays(have)
	if len(found) == 0 {
		return out, nil
	}
	m, err := p.newMigrator(ctx, have)
	if err != nil {
		return nil, err
	}
	var faults diag.List
	for _, name := range found {
		faults.Add(diag.Pos{File: path.Join(p.Settings.Output, name)}, m.addOverlay(name))
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if err := m.plan(out); err != nil {
		return nil, err
	}
	return out, m.verify(ctx, out)
}

// plan adds the moves and the new contents of all files to out.
func (m *migrator) plan(out *Migration) error {
	var faults diag.List
	add := func(from, to string, text []byte) {
		if other, ok := out.files[to]; ok && !bytes.Equal(other, text) {
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{File: from}, "rename one of the files", "cannot move file: another file is moved to %s", to))
		}
		out.files[to], out.Moves = text, append(out.Moves, Move{from, to})
	}
	for _, top := range m.overlays {
		m.planMove(top, top.dir, top.to, func(file string) bool { return m.newPaths[file] == nil }) // the files that nothing refers to
	}
	for _, places := range m.newPaths {
		slices.Sort(places)
	}
	for _, top := range m.overlays {
		for _, below := range slices.Sorted(maps.Keys(top.docs)) {
			to := path.Join(top.to, below, layout.Kustomization)
			add(top.file, to, m.rewrite(top.docs[below], top.file, to))
		}
		if len(top.docs) == 0 {
			out.Moves = append(out.Moves, Move{From: top.file})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(m.newPaths)) {
		for _, to := range slices.Compact(m.newPaths[file]) {
			text := m.teamFiles[file]
			if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(file)) {
				text = m.rewrite(text, file, to)
			}
			add(file, to, text)
		}
	}
	slices.SortStableFunc(out.Moves, func(a, b Move) int { return strings.Compare(a.From, b.From) })
	for _, top := range m.overlays {
		faults.Add(diag.Pos{}, m.checkFree(path.Join(m.OverlaysDir(), top.cluster), out.files))
	}
	return faults.Err()
}

// checkFree returns an error for each file in dir that differs from the planned file at the same
// path. Equal files were written by an interrupted run.
func (m *migrator) checkFree(dir string, files map[string][]byte) error {
	have, err := m.Tree(dir)
	if err != nil {
		return err
	}
	var faults diag.List
	for name, data := range have.All() {
		if name = path.Join(dir, name); !bytes.Equal(files[name], data) {
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{File: name}, "move this file away, run the command again, and merge by hand", "cannot move overlay: file exists in the new place"))
		}
	}
	return faults.Err()
}

// checkPlain returns an error for symbolic links and special files in a directory and among
// its parents.
func checkPlain(fsys fs.FS, dir string) error {
	var faults diag.List
	check := func(name string, mode fs.FileMode) {
		if mode.Type()&^fs.ModeDir != 0 {
			faults.Add(diag.Pos{}, diag.Hintf(diag.Pos{File: name}, "replace it with a copy of its target", "cannot move files: symbolic link or special file"))
		}
	}
	for at := path.Dir(dir); at != "."; at = path.Dir(at) {
		if info, err := fs.Lstat(fsys, at); err == nil {
			check(at, info.Mode())
		}
	}
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			check(name, d.Type())
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return faults.Err()
}

// Write moves the files. On an error, it undoes all moves.
func (m *Migration) Write() (err error) {
	root, err := m.project.disk.Open(0o755)
	if err != nil {
		return err
	}
	var undo []func() error
	defer func() {
		for _, f := range slices.Backward(undo) {
			if err != nil {
				err = errors.Join(err, f())
			}
		}
		err = errors.Join(err, root.Close())
	}()
	for _, to := range slices.Sorted(maps.Keys(m.files)) {
		if data, err := root.ReadFile(to); err == nil && bytes.Equal(data, m.files[to]) {
			continue // written by an interrupted run
		}
		if err := createFile(root, to, m.files[to]); err != nil {
			return err
		}
		undo = append(undo, func() error { return root.Remove(to) })
	}
	for _, move := range m.Moves {
		data, err := root.ReadFile(move.From)
		if errors.Is(err, fs.ErrNotExist) {
			continue // moved to several places
		}
		if err = errors.Join(err, root.Remove(move.From)); err != nil {
			return err
		}
		undo = append(undo, func() error { return createFile(root, move.From, data) })
	}
	for _, move := range m.Moves {
		for dir := path.Dir(move.From); root.Remove(dir) == nil; dir = path.Dir(dir) { // only empty ones
			continue
		}
	}
	m.Written = len(m.Moves) > 0
	return nil
}

// createFile writes a new file. An existing file is an error.
func createFile(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("moving files: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, root.Remove(name))
	}
	return err
}
