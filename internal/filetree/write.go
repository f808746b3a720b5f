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

// Write makes the program's own files in the directory equal to want. It does not change the user's
// files.
//
// Write replaces each file atomically, by renaming a temporary file. All new contents
// are on disk before the first file changes. After the new files are in place, Write
// removes the files in dir's indices that are not in want, and writes the final indices
// last. The next Write, of the same or another tree, recovers from an interrupted one.
//
// A wanted file that exists, is in no index and has different content belongs to the user:
// the error names it. Write overwrites or removes an edited file of an index only with
// [Force]; otherwise the error is an [*EditedError]. Write returns these errors before any
// change. If nothing differs, it writes nothing.
//
// Write creates dir if it does not exist. The top of a Git work tree is an error.
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

// Write is [Dir.Write] in a directory named by the user.
func Write(dir string, want *Tree, opts ...Option) error {
	return OpenUserDir(dir).Write(want, opts...)
}

// Option changes the behavior of Write.
type Option func(*plan)

// Force lets Write overwrite and remove edited files if on is true.
func Force(on bool) Option { return func(p *plan) { p.force = on } }

// EditedError reports files that were edited since the last Write and would be
// overwritten or removed.
type EditedError struct {
	Paths []string // from the root of the tree, sorted
}

// Error returns a message with the paths of the files.
func (e *EditedError) Error() string {
	return "files were edited by hand: " + strings.Join(e.Paths, ", ")
}

// plan is the plan of one Write.
type plan struct {
	dir       string // for messages
	root      *os.Root
	self      *os.File // the directory itself
	want      *Tree    // with its indices
	force     bool
	disk      map[string]fs.FileMode // path → type and permissions
	users     []string               // the user's files
	same      map[string]bool        // own files with the wanted content
	remove    []string               // own files that are not wanted, sorted, indices last
	leftovers []string               // temporary files of an interrupted Write
	lists     map[string][]byte      // indices on disk that need an update
	done      bool                   // nothing to do
}

// newPlan opens and locks a directory, and compares it with the wanted files. The caller
// closes the plan.
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

// close releases the directory and its lock.
func (p *plan) close() {
	if p.self != nil {
		_ = p.self.Close()
	}
	_ = p.root.Close()
}

// compare compares the directory with the wanted files.
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

// read returns the content of a file. For other than regular files it returns a
// placeholder that equals no content of the program's files.
func (p *plan) read(name string) ([]byte, error) {
	if mode := p.disk[name]; !mode.IsRegular() {
		return []byte("\x00" + mode.String()), nil
	}
	return p.root.ReadFile(name)
}

// indexEntries returns the entries of the indices on disk.
func (p *plan) indexEntries() (index, error) {
	return readIndexes(func(yield func(string) bool) {
		for name, mode := range p.disk {
			if mode.IsRegular() && !yield(name) {
				return
			}
		}
	}, p.read)
}

// classify separates the user's files from the program's own files, and returns the own files
// that were edited.
func (p *plan) classify(own index) (edits []string, err error) {
	dirs := map[string]bool{".": true} // directories of own files, present or wanted
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
		case stale, claimed: // conflicts reports claimed files
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

// checkConflicts returns an error for each of the user's files or directories in the place of
// a wanted file or directory.
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

// hasUserFiles reports whether dir contains a file of the user.
func (p *plan) hasUserFiles(dir string) bool {
	return slices.ContainsFunc(p.users, func(name string) bool { return strings.HasPrefix(name, dir+"/") })
}

// checkWritable returns an error if a directory with changes is read-only, even if the process
// could write to it.
func (p *plan) checkWritable() error {
	changed := slices.DeleteFunc(slices.Collect(p.want.Names()), func(name string) bool { return p.same[name] })
	for _, name := range append(changed, p.remove...) {
		if mode, there := p.disk[path.Dir(name)]; there && mode.IsDir() && mode.Perm()&0o200 == 0 {
			return p.wrapError(name, fs.ErrPermission)
		}
	}
	return nil
}

// step is one operation on the file name.
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
				_ = p.root.Remove(name) // the next run removes any leftover
			}
			return p.wrapError(s.name, err)
		}
	}
	return nil
}

// steps returns the operations that write the tree, and the temporary files. Another run
// can continue after any step. No file of the tree changes before the first sync. A new
// directory gets its index first. If an index changes, an intermediate index lists both
// the old and the new files.
func (p *plan) steps() (steps []step, temporaries []string) {
	add := func(name string, do func(root *os.Root) error) { steps = append(steps, step{name, do}) }
	var placements []step
	created := map[string]bool{".": true} // directories
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

// compareIndicesLast compares paths: indices after other files, and the root index last.
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

// nearestExisting returns dir or its nearest parent that exists on disk.
func (p *plan) nearestExisting(dir string) string {
	for dir != "." && !p.disk[dir].IsDir() {
		dir = path.Dir(dir)
	}
	return dir
}

// write writes data to the temporary file for name, with the mode of an existing file and,
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
			_ = keepOwner(f, old) // without permission, the current user owns the new file
			err = f.Chmod(old.Mode().Perm())
		}
	}
	return errors.Join(err, f.Close())
}

// blockingPaths returns files in the place of wanted directories, and directories in the place
// of wanted files, with their content. The order is files, indices, directories, with
// subdirectories before their parents.
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

// removeFile removes a file and then its empty parent directories.
func removeFile(root *os.Root, name string) error {
	if err := ignoreMissing(root.Remove(name)); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			break // not empty
		}
	}
	return nil
}

// ignoreMissing returns nil if err reports a missing file, or a file in the place of its
// directory. Other errors are returned unchanged.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// wrapError adds the path of the unwritten file to err.
func (p *plan) wrapError(name string, err error) error {
	return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, filepath.FromSlash(name)), causeOf(err))
}
