// Command argocd has the parts of Argo CD 3.2 that the tests use, in one binary: the
// application controller, the ApplicationSet controller and the repo server,
// and their dependencies, a Redis and a kustomize.
//
//	argocd COMPONENT [FLAGS]
//	argocd redis ADDRESS
//
// The repo server looks up kustomize in its PATH, for example a link to this binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	applications "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationsets "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	repositories "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/kustomize"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the component named by the program or by its first argument.
func run(args []string) error {
	name, args := filepath.Base(args[0]), args[1:]
	if name == "argocd" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	var c *cobra.Command
	switch name {
	case "application-controller":
		c = applications.NewCommand()
	case "applicationset-controller":
		c = applicationsets.NewCommand()
	case "repo-server":
		c = repositories.NewCommand()
	case "kustomize":
		return runKustomize(args)
	case "redis":
		return serveRedis(args)
	default:
		return fmt.Errorf("no component %q", name)
	}
	c.SetArgs(args)
	return c.Execute()
}

// runKustomize implements the kustomize commands that the repo server calls: build and version.
func runKustomize(args []string) error {
	if len(args) > 0 && args[0] == "version" {
		fmt.Println("v5.7.1")
		return nil
	}
	c := kustomize.NewCmdKustomize(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	c.SetArgs(args[1:])
	return c.Execute()
}

// serveRedis serves a Redis until the process receives a signal to end.
func serveRedis(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(args[0]); err != nil {
		return err
	}
	defer server.Close()
	<-ctx.Done()
	return nil
}
