package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

func newWhyNot(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why-not <[namespace/]package[@version]>",
		Short: "Explain why a version cannot be installed",
		Long: Doc(`
			Explain why a version of an operator cannot be installed, and show the smallest
			change that allows it. The default version is the head of the channel. You can omit
			the namespace if the package is installed or declared in only one.`),
		Example: Examples(`
			quayside why-not memcached-operator@0.0.2
			quayside why-not my-etcd/vault`),
		Args:              WantArgs("an operator ([namespace/]package[@version])"),
		ValidArgsFunction: completeFirst(a.completions(edit.Completer.Versions)),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.printObstacles(cmd, args[0]) },
	}
	addOutput(cmd, a, nil, explain.Obstacles{})
	addOffline(cmd, a)
	return cmd
}

func (a *app) printObstacles(cmd *cobra.Command, arg string) error {
	target, err := parseOperatorArg(cmd, arg, true)
	if err != nil {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	target.At.File = arg
	opt := s.ResolveOptions()
	opt.Named = []resolve.Target{target}
	in, err := workspace.ReadProblem(cmd.Context(), s, workspace.Request{Options: opt})
	if err != nil {
		return err
	}
	if target, err = workspace.WithNamespace(target, in.Lock, in.Declared); err != nil {
		return err
	}
	obstacles, err := resolve.WhyNot(in.Index, in.Declared, in.Lock, s.ResolveOptions(), target)
	if err != nil {
		return err
	}
	return a.printText(obstacles, obstacles.Text())
}
