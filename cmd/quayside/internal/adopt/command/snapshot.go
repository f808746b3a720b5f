package command

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/filetree"
)

// sourceDoc explains the argument of commands that read a cluster.
const sourceDoc = `
			The argument is a file with the output of 'kubectl get -o json' or '-o yaml' ('-' for
			standard input), a directory of such files, or a must-gather. Without an argument,
			quayside reads the live cluster of --context, by default the kubeconfig's current one.`

// addSource adds an optional argument with a cluster dump to a command, and flags for a live cluster.
func addSource(h cli.Host, cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cli.Login {
	login := h.AddLogin(cmd)
	cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkSource(cmd, args, login); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
	return login
}

// checkSource returns an error if both a cluster dump and a live cluster are given.
func checkSource(cmd *cobra.Command, args []string, login *cli.Login) error {
	if len(args) > 0 && login.Given() {
		return cli.Usagef(cmd, "--context and --kubeconfig cannot be used with the file %q", args[0])
	}
	return nil
}

// readCluster reads the cluster dump that the argument names. Without an argument, it reads the live cluster.
func readCluster(ctx context.Context, h cli.Host, args []string, login *cli.Login, opt snapshot.Selection) (*snapshot.Snapshot, error) {
	defer h.Log.Done()
	if len(args) == 0 {
		client, err := login.Open()
		if err != nil {
			return nil, err
		}
		h.Log.Progress("reading cluster %s", client.Server)
		return snapshot.ReadLive(ctx, client, opt)
	}
	if args[0] == "-" {
		return snapshot.Read("-", h.Stdin, opt)
	}
	h.Log.Progress("reading %s", args[0])
	file := h.Path(args[0])
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if info.IsDir() {
		return snapshot.Load(filetree.OpenUserDir(file).FS(), ".", filepath.ToSlash(filepath.Clean(args[0]))+"/", opt)
	}
	prefix, _ := filepath.Split(args[0])
	return snapshot.Load(filetree.OpenUserDir(filepath.Dir(file)).FS(), filepath.Base(file), filepath.ToSlash(prefix), opt)
}
