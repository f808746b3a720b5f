package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/garbage"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/lockfile"
)

// addOffline adds the flag --offline to cmd.
func addOffline(cmd *cobra.Command, a *app) {
	cmd.Flags().BoolVar(&a.offline, "offline", false, "no network access; list missing content")
}

// workspaceDir returns the first of these directories that is set: the current workspace of --all,
// the value of -C, the nearest directory upwards with a quayside.yaml. Otherwise it returns the
// current directory.
func (a *app) workspaceDir() (string, error) {
	if dir := cmp.Or(a.workspace, a.dir); dir != "" {
		return dir, nil
	}
	return workspace.Find()
}

// open opens the workspace in the directory of [app.workspaceDir].
func (a *app) open() (*workspace.Project, error) {
	dir, err := a.workspaceDir()
	if err != nil {
		return nil, err
	}
	if info, statErr := os.Stat(dir); a.top != "" && errors.Is(statErr, fs.ErrNotExist) {
		// the workspace may exist only in a revision
	} else if statErr != nil {
		err = statErr
	} else if !info.IsDir() {
		err = fmt.Errorf("%q is not a directory", dir)
	}
	if err != nil {
		return nil, err
	}
	p, err := workspace.Open(workspace.Dir(dir, a.allowedDirs()...), workspace.Env{
		Getenv: a.getenv, Version: a.version, Offline: a.offline, Layout: a.layout, Log: a.log,
		Now: a.now.orNow(),
	})
	if err == nil {
		err = a.lockWriter(p)
	}
	if err == nil && len(p.Settings.Clusters) >= manyClusters {
		garbage.CollectMore()
	}
	return p, err
}

// addWriter makes cmd lock the work tree of each workspace that it opens, until it ends. If one of
// the flags in without is set, cmd writes nothing and takes no lock.
func addWriter(cmd *cobra.Command, a *app, without ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range without {
			if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "false" {
				return run(cmd, args)
			}
		}
		a.writer, a.releases = cmd.CommandPath(), map[string]func(){}
		defer func() {
			for _, release := range a.releases {
				release()
			}
			a.writer = ""
		}()
		return run(cmd, args)
	}
}

// lockWriter locks the work tree of a workspace, unless the command already holds the lock or does
// not write.
func (a *app) lockWriter(p *workspace.Project) error {
	if a.writer == "" || a.releases[p.Top()] != nil {
		return nil
	}
	release, err := p.LockWorkTree(a.writer)
	if err == nil {
		a.releases[p.Top()] = release
	}
	return err
}

// manyClusters is the minimum number of clusters for which garbage collection runs more often. This
// takes time, but saves much memory.
const manyClusters = 200

// openLocked opens the workspace and reads its lock file. A missing lock file is an error.
func (a *app) openLocked() (*workspace.Project, *lockfile.File, error) {
	p, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	lock, err := p.NeedLock()
	return p, lock, err
}

// openForArgs opens the workspace as p. here is the same workspace for reading path arguments: its
// paths are relative to -C or to the current directory.
func (a *app) openForArgs() (p, here *workspace.Project, err error) {
	if p, err = a.open(); err != nil {
		return nil, nil, err
	}
	return p, p.WithRoot(a.root()), nil
}

// allowedDirs returns the directories outside of the repository that a workspace may read.
func (a *app) allowedDirs() []string { return filepath.SplitList(a.getenv(workspace.AllowedEnv)) }

// root returns the base directory of path arguments.
func (a *app) root() workspace.Root { return workspace.Arguments(a.argPath(".")) }

// argPath returns the path for a path argument, which is relative to -C. It returns "" for an empty
// name.
func (a *app) argPath(name string) string {
	name = filepath.FromSlash(name)
	if name == "" || a.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// readArg reads the file of a path argument.
func (a *app) readArg(name string) ([]byte, error) {
	f, err := source.LookupIn(a.dir)(name)
	if err != nil {
		return nil, err
	}
	return f.Read()
}

// parseLayoutTarget parses the target of a build: oci:path or oci:path:tag.
func (a *app) parseLayoutTarget(text string) (dir, tag string, err error) {
	src, err := oci.ParseReference(text)
	if err == nil && (src.Kind != oci.Layout || src.Digest != "") {
		err = fmt.Errorf("%q: must be oci:path or oci:path:tag", text)
	}
	return a.argPath(src.Name), src.Tag, err
}
