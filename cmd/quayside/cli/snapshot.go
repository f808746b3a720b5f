package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/cluster"
)

// snapshot reads the cluster that a command's argument names, the live one
// where there is none.
func (a *app) snapshot(ctx context.Context, args []string, login loginFlags, opt snapshot.Options) (*snapshot.Snapshot, error) {
	defer a.talk.Done()
	if len(args) == 0 {
		client, err := cluster.Open(login.options(a))
		if err != nil {
			return nil, err
		}
		a.talk.Progress("reading cluster %s", client.Server)
		return snapshot.Live(ctx, client, opt)
	}
	if args[0] == "-" {
		return snapshot.Read("-", a.stdin, opt)
	}
	a.talk.Progress("reading %s", args[0])
	file := a.argPath(args[0])
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if info.IsDir() {
		return snapshot.Load(os.DirFS(file), ".", filepath.ToSlash(filepath.Clean(args[0]))+"/", opt)
	}
	prefix, _ := filepath.Split(args[0])
	return snapshot.Load(os.DirFS(filepath.Dir(file)), filepath.Base(file), filepath.ToSlash(prefix), opt)
}
