package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

type verifyOptions struct {
	*app
	output format
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the declarations, the lock and the rendered tree are in step",
		Long: doc(`
			Check that quayside.lock answers the declarations and that the rendered tree is
			what the lock says: 'quayside resolve --check' and 'quayside render --check' in
			one. Every file that differs (~), is missing (+), is no longer needed (-) or is
			not quayside's (?) is listed. Your own files are no fault, but among the
			CustomResourceDefinitions, where every file is applied. Nothing is written.

			Exit codes: 0 in step; 1 something is out of step; 2 an error.`),
		Example: examples(`
			quayside verify --offline`),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addOffline(cmd, o.app)
	addOutput(cmd, &o.output)
	return cmd
}

func (o *verifyOptions) run(ctx context.Context) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	in, err := p.Inputs(ctx, p.ResolveOptions(), false)
	if err != nil {
		return err
	}
	stale := o.checkLock(ctx, in)
	if in.Lock == nil || stale != nil && exitCode(stale) != exitDiffers {
		return stale
	}
	r := &renderOptions{app: o.app, output: o.output, check: true, foreign: true}
	return errors.Join(stale, r.render(ctx, p))
}
