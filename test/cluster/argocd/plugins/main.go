// Command plugins runs a config management plugin of Argo CD 3.2: its server, as in the sidecar,
// and the code of the repo server that finds a plugin and renders with it.
//
//	plugins server [FLAGS]
//	plugins generate REPOSITORY DIRECTORY [NAME=VALUE]...
//
// Both use the directory ARGOCD_PLUGINSOCKFILEPATH to find each other. The output of rendering a
// directory of a repository, with these variables, is written to standard output.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	cmpserver "github.com/argoproj/argo-cd/v3/cmd/argocd-cmp-server/commands"
	"github.com/argoproj/argo-cd/v3/util/app/discovery"
	"github.com/argoproj/argo-cd/v3/util/cmp"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && args[0] == "server":
		c := cmpserver.NewCommand()
		c.SetArgs(args[1:])
		return c.ExecuteContext(ctx)
	case len(args) > 2 && args[0] == "generate":
		return generate(ctx, args[1], args[2], args[3:])
	default:
		return fmt.Errorf("plugins server [FLAGS] | generate REPOSITORY DIRECTORY [NAME=VALUE]")
	}
}

// generate prints the output of the first plugin that accepts a directory.
func generate(ctx context.Context, repository, directory string, env []string) error {
	at := filepath.Join(repository, directory)
	conn, client, err := discovery.DetectConfigManagementPlugin(ctx, at, repository, "", env, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := client.GenerateManifest(ctx)
	if err != nil {
		return err
	}
	if err := cmp.SendRepoStream(stream.Context(), at, repository, stream, env, nil); err != nil {
		return err
	}
	response, err := stream.CloseAndRecv()
	if err != nil {
		return err
	}
	for _, manifest := range response.GetManifests() {
		fmt.Printf("---\n%s\n", manifest)
	}
	return nil
}
