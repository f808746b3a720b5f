package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/subscription"
)

// explainOptions is what the commands that explain have in common: they read
// what resolve reads, and change nothing.
type explainOptions struct {
	*app
	output  format
	offline bool
}

func (o *explainOptions) printText(v any, text string) error {
	return o.print(o.output, v, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.TrimSuffix(text, "\n")+"\n")
		return err
	})
}

// operatorArg reads "[namespace/]package" and, where it is allowed,
// "@version". Without a namespace the target's is empty: see placed.
func operatorArg(cmd *cobra.Command, arg string, version bool) (resolve.Target, error) {
	key, v, at := strings.Cut(arg, "@")
	namespace, pkg, slash := strings.Cut(key, "/")
	if !slash {
		namespace, pkg = "", key
	}
	bad := pkg == "" || slash && namespace == "" || strings.Contains(pkg, "/") || at && (v == "" || !version)
	if bad {
		want := "[namespace/]package"
		if version {
			want += "[@version]"
		}
		return resolve.Target{}, usagef(cmd, "%q: want %s", arg, want)
	}
	return resolve.Target{Namespace: namespace, Package: pkg, Version: v}, nil
}

// placed returns t with a namespace. Where t has none it is the only one in
// which the package is pinned or asked for, else, for a package that nobody
// asks for, the one of its own name; several are an error that lists them.
func placed(t resolve.Target, lock *lockfile.File, set *subscription.Set) (resolve.Target, error) {
	if t.Namespace != "" {
		return t, nil
	}
	var in []string
	if lock != nil {
		for _, p := range lock.Pins {
			if p.Package == t.Package {
				in = append(in, p.Namespace)
			}
		}
	}
	for _, s := range set.Subscriptions {
		if s.Package == t.Package {
			in = append(in, s.Namespace)
		}
	}
	slices.Sort(in)
	in = slices.Compact(in)
	switch len(in) {
	case 0:
		t.Namespace = t.Package
	case 1:
		t.Namespace = in[0]
	default:
		var full []string
		for _, ns := range in {
			full = append(full, ns+"/"+t.Package)
		}
		return t, fmt.Errorf("package %q is in several namespaces: name one of %s", t.Package, strings.Join(full, ", "))
	}
	return t, nil
}

func newWhy(a *app) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:   "why <[namespace/]package>",
		Short: "Explain why an operator is installed",
		Long:  "Show who asked for an operator: the declarations and the requirements that lead to it, the shortest chain first.",
		Example: examples(`
			quayside why vault
			quayside why vault/etcd`),
		Args: oneArg("an operator ([namespace/]package)"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.why(cmd, args[0]) },
	}
	addOutput(cmd, &o.output)
	return cmd
}

func (o *explainOptions) why(cmd *cobra.Command, arg string) error {
	target, err := operatorArg(cmd, arg, false)
	if err != nil {
		return err
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	set, err := s.declarations()
	if err != nil {
		return err
	}
	lock, err := s.needLock()
	if err != nil {
		return err
	}
	if set, err = fromLock(set, lock); err != nil {
		return err
	}
	if target, err = placed(target, lock, set); err != nil {
		return err
	}
	reasons, err := resolve.Why(lock, set, target.Namespace, target.Package)
	if err != nil {
		return err
	}
	return o.printText(reasons, reasons.Text())
}

func newWhyNot(a *app) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:   "why-not <[namespace/]package[@version]>",
		Short: "Explain what stands against a version",
		Long: doc(`
			Show what stands against installing a version of a package in a namespace, and
			the smallest change that would allow it. Without a version it is the head of
			the channel. The namespace may be left out where only one has the package or asks
			for it.`),
		Example: examples(`
			quayside why-not memcached-operator@0.0.2
			quayside why-not my-etcd/vault`),
		Args: oneArg("an operator ([namespace/]package[@version])"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.whyNot(cmd, args[0]) },
	}
	addOutput(cmd, &o.output)
	addOffline(cmd, &o.offline)
	return cmd
}

func (o *explainOptions) whyNot(cmd *cobra.Command, arg string) error {
	target, err := operatorArg(cmd, arg, true)
	if err != nil {
		return err
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	opt := s.resolveOptions()
	opt.Named = []resolve.Target{target}
	in, err := s.inputs(cmd.Context(), opt, false, o.offline)
	if err != nil {
		return err
	}
	if target, err = placed(target, in.prev, in.set); err != nil {
		return err
	}
	obstacles, err := resolve.WhyNot(in.index, in.set, in.prev, s.resolveOptions(), target)
	if err != nil {
		return err
	}
	return o.printText(obstacles, obstacles.Text())
}

func newTree(a *app) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:     "tree",
		Short:   "Show the operators in the lock and what they depend on",
		Long:    "Show the operators in the lock as trees: each declared one with the operators that it depends on below it.",
		Example: examples(`quayside tree`),
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := o.open()
			if err != nil {
				return err
			}
			lock, err := s.needLock()
			if err != nil {
				return err
			}
			nodes := resolve.Tree(lock)
			return o.printText(nodes, resolve.TreeText(nodes))
		},
	}
	addOutput(cmd, &o.output)
	return cmd
}
