package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/subscription"
	"github.com/quayside/quayside/workspace"
)

// lockFile is the name of the lock, beside quayside.yaml.
const lockFile = "quayside.lock"

// maxFile bounds what is read of one file that a person may have written.
const maxFile = 64 << 20

// space is an opened workspace: a directory and what quayside.yaml says of it.
type space struct {
	*app
	dir string // the directory, as the user would name it
	ws  *workspace.Workspace

	signatures *signatures
}

// open finds the workspace: the directory of -C, else the nearest one upwards
// that holds quayside.yaml, else the current one.
func (a *app) open() (*space, error) {
	dir, err := a.findDir()
	if err != nil {
		return nil, err
	}
	s := &space{app: a, dir: dir, signatures: &signatures{}}
	data, err := readFile(s.path(workspace.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		s.ws = workspace.Default()
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.ws, err = workspace.Parse(workspace.FileName, data)
	return s, err
}

func (a *app) findDir() (string, error) {
	if a.dir != "" {
		info, err := os.Stat(a.dir)
		if err != nil {
			return "", err
		}
		if !info.IsDir() {
			return "", fmt.Errorf("%q is not a directory", a.dir)
		}
		return a.dir, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir, up := here, "."; ; dir, up = filepath.Dir(dir), filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(dir, workspace.FileName)); err == nil {
			return up, nil
		}
		if dir == filepath.Dir(dir) {
			return ".", nil
		}
	}
}

// path returns where a file of the workspace lies. Absolute names stay.
func (s *space) path(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

// errNoDeclarations is for a workspace that neither names its declarations nor
// has any in the usual place.
var errNoDeclarations = errors.New("no declarations here")

// declarations reads the declarations that quayside.yaml names. The error is an
// errNoDeclarations where it names none and the usual place is not there.
func (s *space) declarations() (*subscription.Set, error) {
	if usual, ok := s.usual(); ok {
		if _, err := os.Stat(s.path(usual)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: put Subscriptions into %s/, or name their place in %s (spec.declarations)", errNoDeclarations, usual, workspace.FileName)
		}
	}
	opt := subscription.LoadOptions{Paths: s.ws.Declarations, Output: s.ws.Output}
	if applied, ok := s.applied(); ok {
		opt.Applied = []string{applied}
	}
	return subscription.LoadFS(os.DirFS(s.dir), opt)
}

// usual returns the place of declarations that is meant where quayside.yaml
// names none. It is false where it names some.
func (s *space) usual() (string, bool) {
	if _, named := s.ws.Fields["spec.declarations"]; named || len(s.ws.Declarations) != 1 {
		return "", false
	}
	return s.ws.Declarations[0], true
}

// applied returns the directory that the GitOps tool applies, relative to the
// workspace: "rendered", or "." where it lies at or above the workspace. It is
// false where quayside.yaml does not say, or names a place elsewhere.
func (s *space) applied() (string, bool) {
	if s.ws.GitOps == nil {
		return "", false
	}
	if s.ws.GitOps.Path == "" {
		return s.ws.Output, true
	}
	abs, err := filepath.Abs(s.dir)
	if err != nil {
		return "", false
	}
	// The path is relative to the repository: where .git is, else here.
	repo := abs
	for dir := abs; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			repo = dir
			break
		}
	}
	rel, err := filepath.Rel(abs, filepath.Join(repo, filepath.FromSlash(s.ws.GitOps.Path)))
	if err != nil {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	if strings.Trim(rel, "./") == "" {
		return ".", true
	}
	return rel, !strings.HasPrefix(rel, "../")
}

// lock reads a lock, given relative to the workspace. A missing file is
// fs.ErrNotExist.
func (s *space) lock(name string) (*lockfile.File, error) {
	data, err := readFile(s.path(name))
	if err != nil {
		return nil, err
	}
	return lockfile.Parse(filepath.ToSlash(name), data)
}

// needLock reads the workspace's lock and says what to do where it is missing.
func (s *space) needLock() (*lockfile.File, error) {
	lock, err := s.lock(lockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no %s in %s: run 'quayside resolve' first", lockFile, s.dir)
	}
	return lock, err
}

// cache opens the content-addressed store: $XDG_CACHE_HOME/quayside, else
// ~/.cache/quayside.
func (s *space) cache() (*store.Store, error) {
	base := s.env["XDG_CACHE_HOME"]
	if base == "" || !filepath.IsAbs(base) {
		home := s.env["HOME"]
		if home == "" {
			home = s.env["USERPROFILE"]
		}
		if home == "" {
			return nil, errors.New("no cache directory: set XDG_CACHE_HOME or HOME")
		}
		base = filepath.Join(home, ".cache")
	}
	return store.Open(filepath.Join(base, "quayside"))
}

// readFile reads a regular file of at most maxFile bytes.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %d bytes, more than the %d that are read", name, info.Size(), maxFile)
	}
	return os.ReadFile(name)
}

// addOffline gives cmd the flag --offline.
func addOffline(cmd *cobra.Command, offline *bool) {
	cmd.Flags().BoolVar(offline, "offline", false, "never open a socket; what is missing is named")
}

// client returns a client for images, with the paths of layouts and archives
// relative to the workspace.
func (s *space) client(offline bool) (*registry.Client, error) {
	cache, err := s.cache()
	if err != nil {
		return nil, err
	}
	mirrors, err := s.mirrors()
	if err != nil {
		return nil, err
	}
	vendor, err := filepath.Abs(s.path(vendorDir))
	if err != nil {
		return nil, err
	}
	getenv := func(key string) string { return s.env[key] }
	return &registry.Client{
		Store:       cache,
		Vendored:    vendor,
		Offline:     offline,
		Mirrors:     mirrors,
		Dir:         s.dir,
		Credentials: registry.DefaultCredentials(getenv),
		CertDirs:    registry.DefaultCertDirs(getenv),
		UserAgent:   "quayside/" + s.version,
		Progress:    newPulls(s.talk).show,
	}, nil
}

// mirrors reads the files that say where images are fetched from.
func (s *space) mirrors() (registry.Mirrors, error) {
	var all registry.Mirrors
	for i, name := range s.ws.Mirrors {
		data, err := readFile(s.path(name))
		if err != nil {
			return all, diag.Errorf(s.ws.At(fmt.Sprintf("spec.mirrors[%d]", i)), "%w", err)
		}
		m, err := registry.ParseMirrors(filepath.ToSlash(name), data)
		if err != nil {
			return all, err
		}
		all = all.Join(m)
	}
	return all, nil
}
