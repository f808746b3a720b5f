package filetree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Write makes the program's own files in dir equal to want, and leaves the
// user's files as they are.
//
// The new tree is built whole beside dir and then takes its place in one
// step, so that dir holds the old tree or the new one at every moment. Files
// that dir's indices list and that want has not are removed. A file of want's
// that stands already, is in no index and has other content is the user's: an
// error that names it. A listed file that somebody edited is only
// overwritten or removed with [Force]; otherwise the error is an [*EditedError].
// After any error dir is as it was. Where nothing would change, nothing is
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
	if err := recoverTree(real); err != nil {
		return err
	}
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
		return "", fmt.Errorf("%s is a Git work tree: rendering replaces the whole directory, choose one inside it", dir)
	}
	return real, nil
}

// sibling returns the name by which everything that Write makes beside dir begins.
func sibling(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".quayside-")
}

// recoverTree puts right what a killed Write left beside dir.
func recoverTree(dir string) error {
	if err := finish(dir); err != nil {
		return fmt.Errorf("finishing what was begun in %s: %w", dir, err)
	}
	old := sibling(dir) + "old"
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(old); err == nil {
			if err := os.Rename(old, dir); err != nil {
				return fmt.Errorf("restoring %s: %w", dir, err)
			}
		}
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(sibling(dir))) && e.IsDir() {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name())) // what stays is tried again next time
		}
	}
	return nil
}

// plan is what one Write does.
type plan struct {
	dir   string
	want  *Tree // with its indices
	force bool
	disk  map[string]fs.FileMode // what is there: path → type and permissions
	keep  []string               // files and empty directories of the user's, sorted
	same  map[string]bool        // own files that stand as wanted
	done  bool                   // nothing to do
}

func newPlan(dir string, want *Tree, opts ...Option) (*plan, error) {
	for name := range want.files {
		if isIndex(name) {
			return nil, fmt.Errorf("%q is a reserved name", name)
		}
	}
	p := &plan{dir: dir, want: want.withIndexes(), disk: map[string]fs.FileMode{}, same: map[string]bool{}}
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
	pruned, edits, err := p.sort(own)
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
	p.done = !pruned && len(p.same) == p.want.Len()
	return p, p.writable(own)
}

// scan lists what is on disk.
func (p *plan) scan() error {
	err := filepath.WalkDir(p.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.dir, name)
		if err != nil || rel == "." {
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

// sort separates the user's files from our own. It reports whether a file of
// ours is removed, and which were edited.
func (p *plan) sort(own index) (pruned bool, edits []string, err error) {
	holds := map[string]bool{} // directories that hold anything
	for name := range p.disk {
		holds[path.Dir(name)] = true
	}
	for name, mode := range p.disk {
		if mode.IsDir() {
			if !holds[name] {
				p.keep = append(p.keep, name)
			}
			continue
		}
		_, listed := own[name]
		_, wanted := p.want.files[name]
		var data []byte
		if listed || wanted {
			if data, err = p.read(name); err != nil {
				return false, nil, err
			}
		}
		switch own.stateOf(name, data, p.want) {
		case users:
			p.keep = append(p.keep, name)
		case same:
			p.same[name] = true
		case edited:
			edits = append(edits, name)
			pruned = pruned || !wanted
		case stale:
			pruned = pruned || !wanted
		case claimed: // conflicts names it
		}
	}
	slices.Sort(p.keep)
	return pruned, edits, nil
}

// conflicts names every wanted file that would have to replace something of
// the user's, and every file of the user's that cannot be carried over.
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
	for _, name := range p.keep {
		if t := p.disk[name].Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
			errs = append(errs, fmt.Errorf("%s is neither a file, a directory nor a symbolic link", at(name)))
		}
	}
	return errors.Join(errs...)
}

// holdsUsers reports whether something of the user's lies in or at dir.
func (p *plan) holdsUsers(dir string) bool {
	return slices.ContainsFunc(p.keep, func(k string) bool { return k == dir || strings.HasPrefix(k, dir+"/") })
}

// writable refuses to change a directory that is marked read-only, even for a
// process that could.
func (p *plan) writable(own index) error {
	if p.done {
		return nil
	}
	if fi, err := os.Stat(p.dir); err == nil && fi.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, Index), fs.ErrPermission)
	}
	changed := func(name string) error {
		dir := path.Dir(name)
		if mode, ok := p.disk[dir]; ok && mode.IsDir() && mode.Perm()&0o200 == 0 {
			return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, filepath.FromSlash(name)), fs.ErrPermission)
		}
		return nil
	}
	for name := range p.want.All() {
		if !p.same[name] {
			if err := changed(name); err != nil {
				return err
			}
		}
	}
	for name := range own {
		if _, wanted := p.want.files[name]; !wanted && p.disk[name] != 0 && !slices.Contains(p.keep, name) {
			if err := changed(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// run builds the new tree and swaps it in.
func (p *plan) run() error {
	tmp, err := os.MkdirTemp(filepath.Dir(p.dir), filepath.Base(sibling(p.dir))+"new-")
	if err != nil {
		return fmt.Errorf("writing %s: making a directory beside it: %w", p.dir, err)
	}
	stays, err := p.build(tmp)
	if err == nil && !stays {
		err = swap(tmp, p.dir)
	}
	if immovable(err) || err == nil && stays {
		err = inPlace(tmp, p.dir)
	}
	if cleanErr := os.RemoveAll(tmp); err == nil && cleanErr != nil {
		return nil // the tree is the new one; the next run clears what is left
	}
	return err
}

// build makes the new tree at tmp: own files written or, where unchanged,
// linked; the user's linked or copied. It reports whether dir has to stay and
// take the files, for the new one cannot be given to whom the old one belongs.
func (p *plan) build(tmp string) (stays bool, err error) {
	b := &builder{from: p.dir, to: tmp, disk: p.disk}
	if err := b.begin(); err != nil {
		return false, p.named(".", err)
	}
	for name, data := range p.want.All() {
		var err error
		if p.same[name] {
			err = b.carry(name)
		} else {
			err = b.write(name, data)
		}
		if err != nil {
			return false, p.named(name, err)
		}
	}
	for _, name := range p.keep {
		if err := b.carry(name); err != nil {
			return false, p.named(name, err)
		}
	}
	if err := b.modes(); err != nil {
		return false, err
	}
	return b.stays, syncTree(tmp)
}

// named says which file of the tree could not be written, without the name of
// the temporary directory.
func (p *plan) named(name string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("writing %s: %w", filepath.Join(p.dir, filepath.FromSlash(name)), err)
}
