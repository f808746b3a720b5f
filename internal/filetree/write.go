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

// Write makes the program's own files in dir equal to want, and leaves the
// user's files as they are.
//
// Each file is written to a temporary file that then takes its place, so that it
// holds the old content or the new one, never a part. All new contents are on disk
// before the first file changes. Files that dir's indices list and that want has
// not are removed after the new ones are in place, and the final indices are written
// last: after an interruption the same Write, or one of another tree, completes it.
//
// A file of want's that stands already, is in no index and has other content is
// the user's: an error that names it. A listed file that somebody edited is only
// overwritten or removed with [Force]; otherwise the error is an [*EditedError].
// These errors come before anything is changed. If nothing differs, nothing is
// written.
func Write(dir string, want *Tree, opts ...Option) error {
	real, err := realDir(dir)
	if err != nil {
		return err
	}
	parent := filepath.Dir(real)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	unlock, err := lock(parent)
	if err != nil {
		return fmt.Errorf("locking %s: %w", parent, err)
	}
	defer unlock()
	p, err := newPlan(real, want, opts...)
	if err != nil || p.done {
		return err
	}
	return p.run()
}

// Option changes what Write does.
type Option func(*plan)

// Force has Write overwrite and remove edited files.
func Force(on bool) Option { return func(p *plan) { p.force = on } }

// EditedError is the refusal to overwrite or remove files that somebody edited
// after they were written.
type EditedError struct {
	Paths []string // from the root of the tree, sorted
}

// Error names the files.
func (e *EditedError) Error() string {
	return "files were edited by hand: " + strings.Join(e.Paths, ", ")
}

// realDir returns the directory that dir names, symbolic links resolved, as
// an absolute path. It need not exist.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(abs); err == nil {
			return "", fmt.Errorf("%s is a symbolic link to nothing", dir)
		}
		return abs, nil
	}
	if err != nil {
		return "", err
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	if _, err := os.Lstat(filepath.Join(real, ".git")); err == nil {
		return "", fmt.Errorf("%s is a Git work tree: choose a directory inside it", dir)
	}
	return real, nil
}

// plan is the work of one Write.
type plan struct {
	dir    string
	want   *Tree // with its indices
	force  bool
	disk   map[string]fs.FileMode // path → type and permissions
	users  []string               // files of the user's
	same   map[string]bool        // own files that are as wanted
	remove []string               // own files that are not wanted, sorted, indices last
	left   []string               // temporary files of an interrupted Write
	lists  map[string][]byte      // indices on disk that are to be replaced
	done   bool                   // nothing to do
}

func newPlan(dir string, want *Tree, opts ...Option) (*plan, error) {
	for name := range want.files {
		if isIndex(name) || isTemporary(name) {
			return nil, fmt.Errorf("%q is a reserved name", name)
		}
	}
	p := &plan{dir: dir, want: want.withIndexes(), disk: map[string]fs.FileMode{}, same: map[string]bool{}, lists: map[string][]byte{}}
	for _, set := range opts {
		set(p)
	}
	if err := p.scan(); err != nil {
		return nil, err
	}
	own, err := p.own()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	edits, err := p.sort(own)
	if err != nil {
		return nil, err
	}
	if err := p.conflicts(own); err != nil {
		return nil, err
	}
	if len(edits) > 0 && !p.force {
		slices.Sort(edits)
		return nil, &EditedError{edits}
	}
	p.done = len(p.remove)+len(p.left) == 0 && len(p.same) == p.want.Len()
	return p, p.writable()
}

// scan lists the files and directories on disk.
func (p *plan) scan() error {
	err := filepath.WalkDir(p.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		p.disk[filepath.ToSlash(rel)] = fi.Mode()
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && len(p.disk) == 0 {
		return nil
	}
	return err
}

// read returns a file's content, for what is no regular file something that no
// file of the program's holds.
func (p *plan) read(name string) ([]byte, error) {
	if mode := p.disk[name]; !mode.IsRegular() {
		return []byte("\x00" + mode.String()), nil
	}
	return os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
}

// own returns the entries of the indices on disk.
func (p *plan) own() (index, error) {
	return readIndexes(func(yield func(string) bool) {
		for name, mode := range p.disk {
			if mode.IsRegular() && !yield(name) {
				return
			}
		}
	}, p.read)
}

// sort separates the user's files from our own, and returns those of ours that
// were edited.
func (p *plan) sort(own index) (edits []string, err error) {
	dirs := map[string]bool{".": true} // that hold files of ours, or have to
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
			p.left = append(p.left, name)
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
		case users:
			p.users = append(p.users, name)
		case same:
			p.same[name] = true
		case edited:
			edits = append(edits, name)
		case stale, claimed: // conflicts names a claimed one
		}
		if listed && wanted && isIndex(name) {
			p.lists[name] = data
		}
		if !wanted && state != users {
			p.remove = append(p.remove, name)
		}
	}
	slices.SortFunc(p.remove, indicesLast)
	return edits, nil
}

// conflicts names every wanted file that would have to replace something of
// the user's.
func (p *plan) conflicts(own index) error {
	var errs []error
	at := func(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }
	for name := range p.want.All() {
		mode, there := p.disk[name]
		_, listed := own[name]
		switch {
		case there && mode.IsDir() && p.holdsUsers(name):
			errs = append(errs, fmt.Errorf("%s is your directory, but a file of that name has to be written", at(name)))
		case there && !mode.IsDir() && !listed && !p.same[name]:
			errs = append(errs, fmt.Errorf("%s is your file, but one of that name has to be written", at(name)))
		}
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if _, listed := own[d]; !listed && p.disk[d] != 0 && !p.disk[d].IsDir() {
				errs = append(errs, fmt.Errorf("%s is your file, but a directory of that name has to be written", at(d)))
			}
		}
	}
	return errors.Join(errs...)
}

// holdsUsers reports whether a file of the user's lies in dir.
func (p *plan) holdsUsers(dir string) bool {
	return slices.ContainsFunc(p.users, func(name string) bool { return strings.HasPrefix(name, dir+"/") })
}

// writable refuses to change a directory that is marked read-only, even for a
// process that could.
func (p *plan) writable() error {
	changed := slices.DeleteFunc(slices.Collect(p.want.Names()), func(name string) bool { return p.same[name] })
	for _, name := range append(changed, p.remove...) {
		if mode, there := p.disk[path.Dir(name)]; there && mode.IsDir() && mode.Perm()&0o200 == 0 {
			return p.named(name, fs.ErrPermission)
		}
	}
	return nil
}

// step is one operation on a file.
type step struct {
	name string
	do   func(root *os.Root) error
}

// run takes the steps in their order.
func (p *plan) run() error {
	if err := os.Mkdir(p.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	steps, temporaries := p.steps()
	for _, s := range steps {
		if err := s.do(root); err != nil {
			for _, name := range temporaries {
				_ = root.Remove(name) // the next run removes what is left
			}
			return p.named(s.name, err)
		}
	}
	return nil
}

// steps returns the operations that make the tree, so that another run can go on
// after any of them, and the temporary files. Before the sync no file of the tree is
// changed. A new directory gets its index first. One whose index changes has an index
// meanwhile that lists the files of the old one and the new one.
func (p *plan) steps() (steps []step, temporaries []string) {
	add := func(name string, do func(root *os.Root) error) { steps = append(steps, step{name, do}) }
	var placed []step
	made := map[string]bool{".": true} // directories
	write := func(name string, data []byte) {
		temporary := path.Join(p.existing(path.Dir(name)), fmt.Sprintf("%s.%d", Index, len(temporaries)))
		temporaries = append(temporaries, temporary)
		add(name, func(root *os.Root) error { return p.write(root, temporary, name, data) })
		if dir := path.Dir(name); !made[dir] && !p.disk[dir].IsDir() {
			made[dir] = true
			placed = append(placed, step{name, func(root *os.Root) error { return root.MkdirAll(dir, 0o755) }})
		}
		placed = append(placed, step{name, func(root *os.Root) error { return root.Rename(temporary, name) }})
	}
	for _, name := range p.left {
		add(name, func(root *os.Root) error { return gone(root.Remove(name)) })
	}
	names := slices.DeleteFunc(slices.Collect(p.want.Names()), func(name string) bool { return p.same[name] })
	slices.SortFunc(names, indicesLast)
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
	flush := func(*os.Root) error { return syncTree(p.dir) }
	add(".", flush)
	blocking := p.inTheWay(names)
	for _, name := range blocking {
		add(name, func(root *os.Root) error { return gone(root.Remove(name)) })
	}
	steps = append(steps, placed[:len(placed)-len(last)]...)
	for _, name := range p.remove {
		if !slices.Contains(blocking, name) {
			add(name, func(root *os.Root) error { return removeFile(root, name) })
		}
	}
	steps = append(steps, placed[len(placed)-len(last):]...)
	add(".", flush)
	return steps, temporaries
}

// indicesLast sorts paths, those of indices last, and the root's after all others.
func indicesLast(a, b string) int {
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

// isTemporary reports whether a name is one of those that new content is written to.
func isTemporary(name string) bool { return strings.HasPrefix(path.Base(name), Index+".") }

// existing returns the nearest directory upwards that is on disk.
func (p *plan) existing(dir string) string {
	for dir != "." && !p.disk[dir].IsDir() {
		dir = path.Dir(dir)
	}
	return dir
}

// write writes the new content of a file. What takes the place of a file has its
// mode, and its owner and group if that is allowed.
func (p *plan) write(root *os.Root, temporary, name string, data []byte) error {
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if mode, there := p.disk[name]; there && mode.IsRegular() && err == nil {
		var old fs.FileInfo
		if old, err = root.Lstat(name); err == nil {
			_ = keepOwner(f, old) // whoever may not give it away has a file of his own
			err = f.Chmod(old.Mode().Perm())
		}
	}
	return errors.Join(err, f.Close())
}

// inTheWay returns files where directories have to be, and directories, with the
// files in them, where files have to be: files, then indices, then directories, those
// in another before it.
func (p *plan) inTheWay(names []string) []string {
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
	for _, name := range p.left {
		delete(found, name)
	}
	out := slices.Sorted(maps.Keys(found))
	isDir := func(name string) bool { return p.disk[name].IsDir() }
	files, dirs := slices.DeleteFunc(slices.Clone(out), isDir), slices.DeleteFunc(out, func(name string) bool { return !isDir(name) })
	slices.SortFunc(files, indicesLast)
	slices.Reverse(dirs)
	return append(files, dirs...)
}

// removeFile removes a file, and the directories that it leaves empty.
func removeFile(root *os.Root, name string) error {
	if err := gone(root.Remove(name)); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			break // not empty
		}
	}
	return nil
}

// gone returns no error for a file that is not there, or whose directory is a file
// by now.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// named returns an error with the file of the tree that could not be written.
func (p *plan) named(name string, err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	} else if errors.As(err, &linkErr) {
		err = linkErr.Err
	}
	return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, filepath.FromSlash(name)), err)
}
