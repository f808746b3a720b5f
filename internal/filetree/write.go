package filetree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Write replaces quayside's files in the directory by the files of want. It does not change files of the
// user.
//
// Each file is replaced atomically, by renaming a temporary file. First, all new contents are written to
// disk as temporary files. Then the files are renamed, and files in an index that are not in want are
// removed. The final index files are written last. If Write is interrupted, the next Write, of the same or
// another tree, recovers.
//
// An existing file that is in no index belongs to the user. If want contains such a file with other
// content, Write returns an error that names the file. If a file in an index was edited, Write returns an
// [*EditedError]. With [Force], Write overwrites or removes the edited file instead. These errors occur
// before any change. If nothing differs, nothing is written.
//
// Write creates the directory if it does not exist. It returns an error if the directory is the top of a
// Git work tree.
func (d Dir) Write(want *Tree, opts ...Option) error {
	p, err := newPlan(d, want, opts...)
	if err != nil {
		return err
	}
	defer p.close()
	if p.done {
		return nil
	}
	return p.run()
}

// Write is [Dir.Write] for a directory that the user has named.
func Write(dir string, want *Tree, opts ...Option) error {
	return OpenUserDir(dir).Write(want, opts...)
}

// Option is an option of Write.
type Option func(*plan)

// Force makes Write overwrite and remove edited files if on is true.
func Force(on bool) Option { return func(p *plan) { p.force = on } }

// EditedError means that Write would overwrite or remove files that were edited since the last
// Write.
type EditedError struct {
	Paths []string // paths relative to the root of the tree, sorted
}

func (e *EditedError) Error() string {
	return "files were edited by hand: " + strings.Join(e.Paths, ", ")
}

// plan holds the changes of one Write.
type plan struct {
	dir       string // path of the directory for messages
	root      *os.Root
	self      *os.File // the directory itself, for locking
	want      *Tree    // the wanted tree with its index files
	force     bool
	disk      map[string]fs.FileMode // path → type and permissions
	users     []string               // paths of the user's files
	same      map[string]bool        // files that already have the wanted content
	remove    []string               // files written by quayside that are not wanted; sorted, index files last
	leftovers []string               // temporary files that an interrupted Write left
	lists     map[string][]byte      // index files on disk that must be updated
	done      bool                   // there is nothing to do
}

// newPlan opens and locks a directory, and compares it with want. The caller must close the plan.
func newPlan(d Dir, want *Tree, opts ...Option) (_ *plan, err error) {
	for name := range want.files {
		if isIndex(name) || isTemporary(name) {
			return nil, fmt.Errorf("%q is a reserved name", name)
		}
	}
	root, err := d.Open(0o755)
	if err != nil {
		return nil, err
	}
	p := &plan{dir: d.name, root: root, want: want.withIndexes(), disk: map[string]fs.FileMode{}, same: map[string]bool{}, lists: map[string][]byte{}}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for _, set := range opts {
		set(p)
	}
	if p.self, err = root.Open("."); err == nil {
		err = lock(p.self)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the directory %s: %w", d.name, err)
	}
	if _, err := root.Lstat(".git"); err == nil {
		return nil, fmt.Errorf("%s is a Git work tree: choose a directory inside it", d.name)
	}
	return p, p.compare()
}

// close closes the directory and releases its lock.
func (p *plan) close() {
	if p.self != nil {
		_ = p.self.Close()
	}
	_ = p.root.Close()
}

// compare compares the directory with the wanted tree.
func (p *plan) compare() error {
	if err := p.scan(); err != nil {
		return fmt.Errorf("reading %s: %w", p.dir, err)
	}
	own, err := p.indexEntries()
	if err != nil {
		return fmt.Errorf("reading %s: %w", p.dir, err)
	}
	edits, err := p.classify(own)
	if err != nil {
		return err
	}
	if err := p.checkConflicts(own); err != nil {
		return err
	}
	if len(edits) > 0 && !p.force {
		slices.Sort(edits)
		return &EditedError{edits}
	}
	p.done = len(p.remove)+len(p.leftovers) == 0 && len(p.same) == p.want.Len()
	return p.checkWritable()
}

// scan lists the files and directories on disk.
func (p *plan) scan() error {
	return fs.WalkDir(p.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		p.disk[name] = fi.Mode()
		return nil
	})
}

// read returns the content of a file. For a file that is not regular, it returns a placeholder that
// differs from the content of every file that quayside writes.
func (p *plan) read(name string) ([]byte, error) {
	if mode := p.disk[name]; !mode.IsRegular() {
		return []byte("\x00" + mode.String()), nil
	}
	return p.root.ReadFile(name)
}

// indexEntries returns the entries of the index files on disk.
func (p *plan) indexEntries() (index, error) {
	return readIndexes(func(yield func(string) bool) {
		for name, mode := range p.disk {
			if mode.IsRegular() && !yield(name) {
				return
			}
		}
	}, p.read)
}

// classify divides the files on disk into files of the user and files written by quayside. own holds the
// entries of the index files. classify returns the files written by quayside that were edited.
func (p *plan) classify(own index) (edits []string, err error) {
	dirs := map[string]bool{".": true} // directories that contain files of quayside, on disk or in the wanted tree
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(own)), p.want.Names()) {
		for dir := path.Dir(name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for name, mode := range p.disk {
		if mode.IsDir() {
			continue
		}
		if isTemporary(name) && mode.IsRegular() && dirs[path.Dir(name)] {
			p.leftovers = append(p.leftovers, name)
			continue
		}
		_, listed := own[name]
		_, wanted := p.want.files[name]
		var data []byte
		if listed || wanted {
			if data, err = p.read(name); err != nil {
				return nil, err
			}
		}
		state := own.stateOf(name, data, p.want)
		switch state {
		case userOwned:
			p.users = append(p.users, name)
		case same:
			p.same[name] = true
		case edited:
			edits = append(edits, name)
		case stale, claimed: // checkConflicts reports claimed files
		}
		if listed && wanted && isIndex(name) {
			p.lists[name] = data
		}
		if !wanted && state != userOwned {
			p.remove = append(p.remove, name)
		}
	}
	slices.SortFunc(p.remove, compareIndicesLast)
	return edits, nil
}

// checkConflicts returns an error for each file or directory of the user that is in the place of a
// wanted file or directory.
func (p *plan) checkConflicts(own index) error {
	var errs []error
	blocked := map[string]bool{}
	at := func(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }
	for name := range p.want.All() {
		mode, there := p.disk[name]
		_, listed := own[name]
		switch {
		case there && mode.IsDir() && p.hasUserFiles(name):
			errs = append(errs, fmt.Errorf("%s is a directory that quayside did not write, but a file with that name is needed", at(name)))
		case there && !mode.IsDir() && !listed && !p.same[name]:
			errs = append(errs, fmt.Errorf("%s was not written by quayside, but a file with that name is needed", at(name)))
		}
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if _, listed := own[d]; !listed && p.disk[d] != 0 && !p.disk[d].IsDir() && !blocked[d] {
				blocked[d] = true
				errs = append(errs, fmt.Errorf("%s is a file that quayside did not write, but a directory with that name is needed", at(d)))
			}
		}
	}
	return errors.Join(errs...)
}

// hasUserFiles reports whether dir contains a file of the user, at any depth.
func (p *plan) hasUserFiles(dir string) bool {
	return slices.ContainsFunc(p.users, func(name string) bool { return strings.HasPrefix(name, dir+"/") })
}

// checkWritable returns an error if a directory with changes is read-only, even if the process, for example as
// root, could write to it.
func (p *plan) checkWritable() error {
	changed := slices.DeleteFunc(slices.Collect(p.want.Names()), func(name string) bool { return p.same[name] })
	for _, name := range append(changed, p.remove...) {
		if mode, there := p.disk[path.Dir(name)]; there && mode.IsDir() && mode.Perm()&0o200 == 0 {
			return p.wrapError(name, fs.ErrPermission)
		}
	}
	return nil
}

// step is one operation on a file.
type step struct {
	name string
	do   func(root *os.Root) error
}

// run performs the steps in order.
func (p *plan) run() error {
	steps, temporaries := p.steps()
	for _, s := range steps {
		if err := s.do(p.root); err != nil {
			for _, name := range temporaries {
				_ = p.root.Remove(name) // ignore the error: the next run removes leftover files
			}
			return p.wrapError(s.name, err)
		}
	}
	return nil
}

// steps returns the operations that write the tree, and the names of the temporary files. If the process ends
// after any step, another run can continue. No file of the tree changes before the first sync. A new directory
// gets its index first. An index that changes is first replaced by an index that lists both the old and the new
// files.
func (p *plan) steps() (steps []step, temporaries []string) {
	add := func(name string, do func(root *os.Root) error) { steps = append(steps, step{name, do}) }
	var placements []step
	created := map[string]bool{".": true} // directories that exist or have a step
	write := func(name string, data []byte) {
		temporary := path.Join(p.nearestExisting(path.Dir(name)), fmt.Sprintf("%s.%d", Index, len(temporaries)))
		temporaries = append(temporaries, temporary)
		add(name, func(root *os.Root) error { return p.write(root, temporary, name, data) })
		if dir := path.Dir(name); !created[dir] && !p.disk[dir].IsDir() {
			created[dir] = true
			placements = append(placements, step{name, func(root *os.Root) error { return root.MkdirAll(dir, 0o755) }})
		}
		placements = append(placements, step{name, func(root *os.Root) error { return root.Rename(temporary, name) }})
	}
	for _, name := range p.leftovers {
		add(name, func(root *os.Root) error { return ignoreMissing(root.Remove(name)) })
	}
	names := slices.DeleteFunc(slices.Collect(p.want.Names()), func(name string) bool { return p.same[name] })
	slices.SortFunc(names, compareIndicesLast)
	files := slices.IndexFunc(append(slices.Clone(names), Index), isIndex)
	var last []string
	for _, name := range names[files:] {
		list := p.want.files[name]
		if old, there := p.lists[name]; there {
			list, last = slices.Concat(old, []byte("\n"), list), append(last, name)
		}
		write(name, list)
	}
	for _, name := range slices.Concat(names[:files], last) {
		write(name, p.want.files[name])
	}
	flush := func(*os.Root) error { return syncTree(p.self) }
	add(".", flush)
	blocking := p.blockingPaths(names)
	for _, name := range blocking {
		add(name, func(root *os.Root) error { return ignoreMissing(root.Remove(name)) })
	}
	steps = append(steps, placements[:len(placements)-len(last)]...)
	for _, name := range p.remove {
		if !slices.Contains(blocking, name) {
			add(name, func(root *os.Root) error { return removeFile(root, name) })
		}
	}
	steps = append(steps, placements[len(placements)-len(last):]...)
	add(".", flush)
	return steps, temporaries
}

// compareIndicesLast orders paths so that index files come after other files, and the index of the
// root comes last.
func compareIndicesLast(a, b string) int {
	rank := func(name string) int {
		switch {
		case name == Index:
			return 2
		case isIndex(name):
			return 1
		default:
			return 0
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
}

// isTemporary reports whether name is a temporary file of Write.
func isTemporary(name string) bool { return strings.HasPrefix(path.Base(name), Index+".") }

// nearestExisting returns dir if it exists on disk, otherwise its nearest parent that exists.
func (p *plan) nearestExisting(dir string) string {
	for dir != "." && !p.disk[dir].IsDir() {
		dir = path.Dir(dir)
	}
	return dir
}

// write writes data to the temporary file for name. The temporary file gets the mode of the existing file and,
// if permitted, its owner and group.
func (p *plan) write(root *os.Root, temporary, name string, data []byte) error {
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if mode, there := p.disk[name]; there && mode.IsRegular() && err == nil {
		var old fs.FileInfo
		if old, err = root.Lstat(name); err == nil {
			_ = keepOwner(f, old) // ignore the error: without permission, the current user owns the new file
			err = f.Chmod(old.Mode().Perm())
		}
	}
	return errors.Join(err, f.Close())
}

// blockingPaths returns the paths that must be removed before the tree is written: files in the place of wanted
// directories, and directories, with their content, in the place of wanted files. Files come first, then index
// files, then directories. Subdirectories come before their parents.
func (p *plan) blockingPaths(names []string) []string {
	found := map[string]bool{}
	for _, name := range names {
		if p.disk[name].IsDir() {
			for other := range p.disk {
				if other == name || strings.HasPrefix(other, name+"/") {
					found[other] = true
				}
			}
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if mode, there := p.disk[dir]; there && !mode.IsDir() {
				found[dir] = true
			}
		}
	}
	for _, name := range p.leftovers {
		delete(found, name)
	}
	out := slices.Sorted(maps.Keys(found))
	isDir := func(name string) bool { return p.disk[name].IsDir() }
	files, dirs := slices.DeleteFunc(slices.Clone(out), isDir), slices.DeleteFunc(out, func(name string) bool { return !isDir(name) })
	slices.SortFunc(files, compareIndicesLast)
	slices.Reverse(dirs)
	return append(files, dirs...)
}

// removeFile removes a file, and its parent directories if they become empty.
func removeFile(root *os.Root, name string) error {
	if err := ignoreMissing(root.Remove(name)); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			break // the directory is not empty
		}
	}
	return nil
}

// ignoreMissing returns nil if err means that a file does not exist or that its parent is not a directory. It
// returns other errors unchanged.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// wrapError adds the path of the file that could not be written to err.
func (p *plan) wrapError(name string, err error) error {
	return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, filepath.FromSlash(name)), causeOf(err))
}
