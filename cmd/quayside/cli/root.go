package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
)

// Commands returns the whole tree of commands as help shows it, for pages that are
// made of it: a new one at each call, which the caller may change. It is not for
// running: see [Main] for that.
func Commands() *cobra.Command {
	none := terminal.New(io.Discard, nil)
	return newRoot(&app{out: none, talk: terminal.NewTalk(none)})
}

// newRoot returns the whole tree of commands. Those that say nothing of arguments
// take none.
func newRoot(a *app) *cobra.Command {
	a.documents = map[*cobra.Command][]any{}
	root := &cobra.Command{
		Use:   "quayside",
		Short: "Install Kubernetes operators from Git, without a lifecycle manager in the cluster",
		Long: doc(`
			quayside takes Kubernetes operators out of the cluster's control loop and puts
			them into Git. It reads the declarations that you have (Subscription,
			OperatorGroup, CatalogSource, ClusterExtension, OperatorPolicy), resolves them
			into a lock file, and renders the lock into plain manifests that Argo CD or
			Flux applies.

			Exit codes: 0 done, in step, no differences; 1 something differs, is out of step
			or is not healthy; 2 an error; 3 the declarations have no solution; 4 a policy
			said no.`),
		Example: examples(`
			# find an operator, and declare it; subscriptions/ may also be written by hand
			quayside catalog search database
			quayside add etcd -n databases

			# choose versions, write manifests, see what an upgrade would change
			quayside resolve
			quayside render
			quayside diff --upgrade --exit-zero`),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
	}
	root.PersistentFlags().StringVarP(&a.dir, "directory", "C", "", "work in the workspace at `DIR` (default: the nearest quayside.yaml upwards)")
	root.PersistentFlags().BoolVarP(&a.talk.Quiet, "quiet", "q", false, "print results and errors, no notes, warnings or progress")
	root.PersistentFlags().BoolVarP(&a.talk.Verbose, "verbose", "v", false, "tell what is read and fetched, from where, and after how long")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.talk.Quiet && a.talk.Verbose {
			return usagef(cmd, "--quiet and --verbose do not go together")
		}
		return nil
	}
	root.Version = a.version
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate(a.versionLine())
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.talk)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef(cmd, "%w%s", err, meantFlag(cmd, err))
	})
	root.CompletionOptions.DisableDefaultCmd = true
	if err := root.MarkPersistentFlagDirname("directory"); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
	for _, g := range groups() {
		if g.title != "" {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
		for _, command := range g.commands {
			cmd := command(a)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
			for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
				if c.Args == nil && !c.HasSubCommands() {
					c.Args, c.ValidArgsFunction = wantArgs(), cobra.NoFileCompletions
				}
			}
		}
	}
	root.SetHelpCommand(newHelp())
	return root
}

// commandGroup is commands for one purpose.
type commandGroup struct {
	id, title string
	commands  []func(*app) *cobra.Command
}

// groups is the table of commands, in the order of a user's day. Those without a
// title are listed at the end of help.
func groups() []commandGroup {
	type list = []func(*app) *cobra.Command
	return []commandGroup{
		{"begin", "Begin:", list{newInit, newAdd, newRemove}},
		{"change", "Change and review:", list{newResolve, newRender, newDiff, newVerify}},
		{"upgrade", "Upgrade:", list{newOutdated, newUpgrade, newPromote, newPropose}},
		{"explain", "Find and explain:", list{newCatalog, newConfig, newStatus, newTree, newWhy, newWhyNot}},
		{"deliver", "Deliver:", list{newPush, newImages, newMirror, newVendor}},
		{"leave", "Leave OLM:", list{newImport, newAdopt}},
		{"authors", "For authors of operators:", list{newBuild, newBundle}},
		{"", "", list{newCompletion, newMigrate, newSchema, newVersion, newHelpEnvironment}},
	}
}

// group is what a command does that only holds other commands.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	msg := "unknown command %q for %q"
	if meant, known := elsewhere(cmd, args[0]); known {
		return usagef(cmd, msg+" (did you mean %q?)", args[0], cmd.CommandPath(), meant)
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef(cmd, msg+" (did you mean %q?)", args[0], cmd.CommandPath(), near[0])
	}
	return usagef(cmd, msg, args[0], cmd.CommandPath())
}

// elsewhere returns what a word that other tools have for a command is here. It is
// false for other words.
func elsewhere(cmd *cobra.Command, word string) (string, bool) {
	meant, known := otherWords()[cmd.CommandPath()][word]
	return meant, known
}

// otherWords is what other tools, or people, call commands, below which command.
func otherWords() map[string]map[string]string {
	return map[string]map[string]string{
		"quayside": {
			"apply": "quayside render", "bom": "quayside images", "check": "quayside verify", "check-upgrade": "quayside upgrade --check", "create": "quayside init", "delete": "quayside remove",
			"deps": "quayside tree", "describe": "quayside catalog show", "doctor": "quayside adopt check", "explain": "quayside why", "export": "quayside render", "fetch": "quayside vendor",
			"feed": "quayside outdated", "find": "quayside catalog search", "generate": "quayside render", "get": "quayside add", "graph": "quayside catalog graph", "health": "quayside status",
			"info": "quayside catalog show", "install": "quayside add", "lint": "quayside verify", "list": "quayside tree", "lock": "quayside resolve",
			"ls": "quayside tree", "new": "quayside init", "plan": "quayside diff --upgrade", "publish": "quayside push",
			"pull": "quayside vendor", "rm": "quayside remove", "sbom": "quayside images", "search": "quayside catalog search", "show": "quayside catalog show",
			"sync": "quayside render", "template": "quayside render", "test": "quayside verify", "uninstall": "quayside remove", "update": "quayside upgrade",
			"validate": "quayside verify",
		},
		"quayside adopt": {"finish": "quayside adopt run --finish", "rbac": "quayside adopt plan --rbac"},
		"quayside catalog": {
			"describe": "quayside catalog show", "find": "quayside catalog search", "get": "quayside catalog show", "info": "quayside catalog show",
			"ls": "quayside catalog list", "packages": "quayside catalog list", "versions": "quayside catalog show", "build": "quayside build", "push": "quayside push",
		},
		"quayside bundle": {"check": "quayside bundle validate", "build": "quayside build", "create": "quayside build", "lint": "quayside bundle validate", "publish": "quayside push", "push": "quayside push"},
	}
}

// otherFlags is what other tools, or people, call flags.
func otherFlags() map[string]string {
	return map[string]string{
		"chdir": "directory", "cwd": "directory", "dir": "directory", "dry-run": "check", "format": "output", "json": "output=json", "project": "directory",
		"ns": "namespace", "to": "upgrade", "version": "upgrade", "write": "render", "yaml": "output=yaml", "y": "yes", "assume-yes": "yes", "force": "yes",
	}
}

// meantFlag returns what an unknown flag was probably meant to be, to end a message.
func meantFlag(cmd *cobra.Command, err error) string {
	var none *pflag.NotExistError
	if !errors.As(err, &none) || len(none.GetSpecifiedName()) < 2 {
		return ""
	}
	var have []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			have = append(have, "--"+f.Name)
		}
	})
	if hint := diag.DidYouMean("--"+none.GetSpecifiedName(), have); hint != "" {
		return hint
	}
	meant, known := otherFlags()[none.GetSpecifiedName()]
	if name, _, _ := strings.Cut(meant, "="); known && slices.Contains(have, "--"+name) {
		return fmt.Sprintf(" (did you mean %q?)", "--"+meant)
	}
	return ""
}

// newHelp returns cobra's help command with an exit code for unknown topics.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef(cmd.Root(), "unknown help topic %q", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

// wantArgs demands the positional arguments that messages call so.
func wantArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef(cmd, "missing argument: %s", names[len(args)])
		case len(args) > len(names):
			return usagef(cmd, "unexpected argument %q", args[len(names)])
		default:
			return nil
		}
	}
}

// doc removes the indentation that a raw string has in the sources.
func doc(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\t\n ")
}

// examples is doc for examples, which are set in by two columns.
func examples(s string) string {
	return "  " + strings.ReplaceAll(doc(s), "\n", "\n  ")
}

// someArgs demands at least one positional argument, of what messages call so.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef(cmd, "missing argument: %s", name)
		}
		return nil
	}
}
