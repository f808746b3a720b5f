package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/garbage"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/registry"
)

// addOffline gives cmd the flag --offline.
func addOffline(cmd *cobra.Command, a *app) {
	cmd.Flags().BoolVar(&a.offline, "offline", false, "never open a socket; name what is missing")
}

// open opens the workspace: with --all the one whose turn it is, the directory of -C, else the nearest one upwards
// that holds quayside.yaml, else the current one.
func (a *app) open() (*project.Project, error) {
	dir, err := cmp.Or(a.workspace, a.dir), error(nil)
	if dir == "" {
		dir, err = project.Find()
	} else if info, statErr := os.Stat(dir); statErr != nil {
		err = statErr
	} else if !info.IsDir() {
		err = fmt.Errorf("%q is not a directory", dir)
	}
	if err != nil {
		return nil, err
	}
	p, err := project.Open(project.Dir(dir), project.Env{Getenv: a.getenv, Version: a.version, Offline: a.offline, Layout: a.layout, Talk: a.talk, Today: time.Now().UTC().Format(time.DateOnly)})
	if err == nil && len(p.Settings.Clusters) >= fleet {
		garbage.Spare()
	}
	return p, err
}

// fleet is from how many clusters on their tree takes so much memory that collecting
// it more often is worth the time.
const fleet = 200

// locked opens the workspace, and demands a lock.
func (a *app) locked() (*project.Project, *lockfile.File, error) {
	p, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	lock, err := p.NeedLock()
	return p, lock, err
}

// here opens the workspace as it is seen from the directory that paths in
// arguments are relative to: that of -C, else the current one.
func (a *app) here() (p, here *project.Project, err error) {
	if p, err = a.open(); err != nil {
		return nil, nil, err
	}
	return p, p.At(a.root()), nil
}

// root is the directory that paths in arguments are relative to.
func (a *app) root() project.Root { return project.Dir(a.argPath(".")) }

// argPath returns where a path that was given as an argument lies: relative to
// the directory of -C, else to the current one. That of none is none.
func (a *app) argPath(name string) string {
	name = filepath.FromSlash(name)
	if name == "" || a.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// readArg reads a file that was given as an argument.
func (a *app) readArg(name string) ([]byte, error) {
	f, err := source.Below(a.dir)(name)
	if err != nil {
		return nil, err
	}
	return project.ReadFile(f)
}

// layoutTarget reads the destination of a build: oci:path or oci:path:tag.
func (a *app) layoutTarget(text string) (dir, tag string, err error) {
	src, err := registry.ParseSource(text)
	if err == nil && (src.Kind != registry.Layout || src.Digest != "") {
		err = fmt.Errorf("%q: want oci:path or oci:path:tag", text)
	}
	return a.argPath(src.Name), src.Tag, err
}
