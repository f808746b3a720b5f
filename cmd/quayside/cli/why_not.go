package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

func newWhyNot(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why-not <[namespace/]package[@version]>",
		Short: "Explain what rules out a version",
		Long: Doc(`
			Show what stands against installing a version of a package in a namespace, and
			the smallest change that would allow it. Without a version it is the head of
			the channel. The namespace may be left out where only one has the package or asks
			for it.`),
		Example: Examples(`
			quayside why-not memcached-operator@0.0.2
			quayside why-not my-etcd/vault`),
		Args:              WantArgs("an operator ([namespace/]package[@version])"),
		ValidArgsFunction: completeFirst(a.versions),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.whyNot(cmd, args[0]) },
	}
	addOutput(cmd, a, nil, explain.Obstacles{})
	addOffline(cmd, a)
	return cmd
}

func (a *app) whyNot(cmd *cobra.Command, arg string) error {
	target, err := operatorArg(cmd, arg, true)
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
	in, err := s.Inputs(cmd.Context(), opt, false)
	if err != nil {
		return err
	}
	if target, err = workspace.Placed(target, in.Lock, in.Declared); err != nil {
		return err
	}
	obstacles, err := resolve.WhyNot(in.Index, in.Declared, in.Lock, s.ResolveOptions(), target)
	if err != nil {
		return err
	}
	return a.printText(obstacles, obstacles.Text())
}
