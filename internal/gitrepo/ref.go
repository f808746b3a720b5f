package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// branchName returns the full name of a branch, and refuses the names by which
// Git calls other things.
func branchName(name string) (plumbing.ReferenceName, error) {
	ref := plumbing.NewBranchReferenceName(name)
	err := ref.Validate()
	if err == nil && (name == "HEAD" || strings.HasPrefix(name, "refs/")) {
		err = errors.New("a name of Git's own: choose another, without refs/")
	}
	return ref, err
}

// vacant reports why a branch cannot be made or moved, nil where it can.
func (r *Repo) vacant(ref plumbing.ReferenceName) error {
	if where := r.checkedOut(ref); where != "" {
		return fmt.Errorf("it is checked out in %s: choose another name", where)
	}
	names, err := r.branches()
	for _, name := range names {
		if strings.HasPrefix(name, string(ref)+"/") || strings.HasPrefix(string(ref), name+"/") {
			return fmt.Errorf("branch %q is there, and one name cannot be a file and a directory: choose another name", plumbing.ReferenceName(name).Short())
		}
	}
	return err
}

// branches returns the full names of all branches, in no order, broken ones
// too.
func (r *Repo) branches() ([]string, error) {
	var out []string
	err := filepath.WalkDir(filepath.Join(r.common, "refs", "heads"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(name) != lockSuffix {
			rel, _ := filepath.Rel(r.common, name)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	packed, packedErr := os.ReadFile(filepath.Join(r.common, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "refs/heads/") {
			out = append(out, name)
		}
	}
	if errors.Is(packedErr, fs.ErrNotExist) {
		packedErr = nil
	}
	return out, errors.Join(err, packedErr)
}

// Branches returns the branches below a name, here and as remotes were last seen to
// have them, sorted: for "up" those that are called "up/…".
func (r *Repo) Branches(ctx context.Context, below string) ([]string, error) {
	var all []string
	if r.only != nil {
		out, err := r.only.run(ctx, nil, nil, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes")
		if err != nil {
			return nil, err
		}
		all = strings.Fields(string(out))
	} else {
		refs, err := r.git.References()
		if err != nil {
			return nil, err
		}
		defer refs.Close()
		err = refs.ForEach(func(ref *plumbing.Reference) error {
			all = append(all, string(ref.Name()))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var out []string
	for _, ref := range all {
		name, here := strings.CutPrefix(ref, "refs/heads/")
		if rest, remote := strings.CutPrefix(ref, "refs/remotes/"); remote {
			_, name, here = strings.Cut(rest, "/")
		}
		if here && strings.HasPrefix(name, below+"/") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// checkedOut returns the work tree that has a branch checked out, or is amid a
// rebase or bisection of it; empty where none has.
func (r *Repo) checkedOut(ref plumbing.ReferenceName) string {
	linked, _ := filepath.Glob(filepath.Join(r.common, "worktrees", "*"))
	if set, err := r.settings(); err != nil || !set.on("core.bare") {
		linked = append(linked, r.common)
	}
	for _, dir := range linked {
		for _, file := range []string{"HEAD", "rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name", "BISECT_START"} {
			data, _ := os.ReadFile(filepath.Join(dir, file)) // what is not there tells nothing
			for line := range strings.Lines(string(data)) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "ref: ")
				if line == string(ref) || file == "BISECT_START" && line == ref.Short() {
					return workTree(dir)
				}
			}
		}
	}
	return ""
}

// workTree returns the directory of which dir is the state.
func workTree(dir string) string {
	if data, err := os.ReadFile(filepath.Join(dir, "gitdir")); err == nil {
		dir = strings.TrimSpace(string(data))
	}
	return filepath.Dir(dir)
}

// put stores an object so that it survives a crash: a name never stands for
// anything but the whole of it.
func (r *Repo) put(o plumbing.EncodedObject) (plumbing.Hash, error) {
	hash := o.Hash()
	if r.git.Storer.HasEncodedObject(hash) == nil {
		return hash, nil
	}
	name := hash.String()
	dir := filepath.Join(r.common, "objects", name[:2])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return hash, err
	}
	tmp, err := temporary(dir, 0o444, func(w io.Writer) error { return encode(w, o) })
	if err != nil {
		return hash, err
	}
	return hash, rename(tmp, filepath.Join(dir, name[2:]))
}

func encode(w io.Writer, o plumbing.EncodedObject) error {
	out := objfile.NewWriter(w)
	in, err := o.Reader()
	if err == nil {
		err = out.WriteHeader(o.Type(), o.Size())
	}
	if err == nil {
		_, err = io.Copy(out, in)
	}
	return errors.Join(err, out.Close())
}

// temporary writes a file to disk under a name of its own, by which Git knows
// it for one that may go, and returns that.
func temporary(dir string, mode fs.FileMode, fill func(io.Writer) error) (string, error) {
	name := filepath.Join(dir, fmt.Sprintf("tmp_obj_%d_%d", os.Getpid(), time.Now().UnixNano()))
	return name, create(name, mode, fill)
}

// create writes a file to disk that must not be there yet.
func create(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// rename gives a file its name, and brings that to disk where the system can.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Remove(from))
	}
	for _, name := range []string{filepath.Dir(to), filepath.Dir(filepath.Dir(to))} {
		if dir, err := os.Open(name); err == nil {
			_ = dir.Sync()
			_ = dir.Close()
		}
	}
	return nil
}

// lockSuffix is what Git adds to the name of a file that it is about to replace.
const lockSuffix = ".lock"

// lockTries is how often a lock is tried for, and lockPause how long it is
// waited in between: one second in all.
const (
	lockTries = 100
	lockPause = 10 * time.Millisecond
)

// refUpdate moves a branch as Git does: whoever holds its lock file may, and
// that file becomes the new branch.
type refUpdate struct {
	common string // directory
	ref    plumbing.ReferenceName
	hash   plumbing.Hash
	old    func() (plumbing.Hash, error) // what there is, and whether it may be replaced
	who    object.Signature
	why    string // for the log
	logged bool   // begin a log

	tmp  string
	held bool // the lock
}

// run takes the steps in their order, and cleans up.
func (u *refUpdate) run() error {
	var err error
	for _, step := range u.steps() {
		if err = step(); err != nil {
			break
		}
	}
	if u.tmp != "" {
		_ = os.Remove(u.tmp)
	}
	if u.held {
		_ = os.Remove(u.path() + lockSuffix)
	}
	return err
}

func (u *refUpdate) steps() []func() error {
	return []func() error{u.write, u.lock, u.log, u.move}
}

func (u *refUpdate) path() string { return filepath.Join(u.common, filepath.FromSlash(string(u.ref))) }

func (u *refUpdate) content(w io.Writer) error {
	_, err := io.WriteString(w, u.hash.String()+"\n")
	return err
}

// write brings the new content to disk, so that the lock is held for no longer
// than it takes to rename a file.
func (u *refUpdate) write() (err error) {
	dir := filepath.Join(u.common, "objects", u.hash.String()[:2])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	u.tmp, err = temporary(dir, 0o666, u.content)
	return err
}

// lock makes the lock file, which holds the new content from the first moment
// where the file system can do that, and waits a little for who else holds it.
func (u *refUpdate) lock() error {
	name := u.path() + lockSuffix
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	for range lockTries {
		err := os.Link(u.tmp, name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = create(name, 0o666, u.content)
		}
		if !errors.Is(err, fs.ErrExist) {
			u.held = err == nil
			return err
		}
		time.Sleep(lockPause)
	}
	return fmt.Errorf("%s is there: another process moves the branch, or was killed while it did; remove the file if none runs", name)
}

// log notes in the log of the branch, where it has one, what moves it.
func (u *refUpdate) log() error {
	old, err := u.old()
	if err != nil {
		return err
	}
	name := filepath.Join(u.common, "logs", filepath.FromSlash(string(u.ref)))
	removeEmpty(name)
	flags := os.O_WRONLY | os.O_APPEND
	if u.logged {
		flags |= os.O_CREATE
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %s <%s> %d %s\t%s\n", old, u.hash, u.who.Name, u.who.Email, u.who.When.Unix(), u.who.When.Format("-0700"), u.why)
	return errors.Join(err, f.Close())
}

// move makes the lock file the branch.
func (u *refUpdate) move() error {
	removeEmpty(u.path())
	err := rename(u.path()+lockSuffix, u.path())
	u.held = false
	return err
}

// removeEmpty removes a directory in which there are none but empty directories.
func removeEmpty(name string) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return
	}
	for _, e := range entries {
		removeEmpty(filepath.Join(name, e.Name()))
	}
	_ = os.Remove(name) // stays where something is in it, which rename says
}
