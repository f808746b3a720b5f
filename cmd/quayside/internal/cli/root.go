package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/terminal"
)

// Commands returns a new tree of commands, for generating documentation. Callers can change the
// commands, but cannot run them; see [Main].
func Commands(parts []Part) *cobra.Command {
	none := terminal.New(io.Discard, nil)
	return newRoot(&app{parts: parts, out: none, log: terminal.NewLogger(none)})
}

// newRoot returns the tree of all commands. A command that does not set Args accepts no arguments.
func newRoot(a *app) *cobra.Command {
	a.documents = map[*cobra.Command][]any{}
	root := &cobra.Command{
		Use:   "quayside",
		Short: "Manage Kubernetes operators from Git instead of through OLM",
		Long: Doc(`
			quayside manages Kubernetes operators from Git, without the Operator Lifecycle
			Manager (OLM) in the cluster. It resolves your declarations (OLM's Subscriptions,
			ClusterExtensions and OperatorPolicies, or quayside's own Subscriptions) into a lock
			file, quayside.lock, and renders the lock into plain manifests. Argo CD or Flux
			applies the manifests to the cluster.

			Exit codes: 0 done, up to date or no differences; 1 out of date, different or
			unhealthy; 2 an error; 3 the declarations have no solution; 4 refused by a policy,
			or an upgrade that you requested by name is held back.`),
		Example: Examples(`
			# find an operator and declare it
			quayside catalog search database
			quayside add etcd -n databases

			# choose versions, write manifests, review an upgrade
			quayside resolve
			quayside render
			quayside diff --upgrade --exit-zero`),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          Group,
	}
	root.PersistentFlags().StringVarP(&a.dir, "directory", "C", "", "work in the workspace at `DIR` (default: the nearest quayside.yaml upwards)")
	root.PersistentFlags().BoolVarP(&a.log.Quiet, "quiet", "q", false, "print results and errors, no notes, warnings or progress")
	root.PersistentFlags().BoolVarP(&a.log.Verbose, "verbose", "v", false, "log files read and content fetched, with sources and durations")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.log.Quiet && a.log.Verbose {
			return Usagef(cmd, "--quiet cannot be used with --verbose")
		}
		a.out.Brief = a.log.Quiet
		return nil
	}
	root.Version = a.version
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate(a.versionLine())
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.log)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef(cmd, "%w%s", err, suggestFlag(cmd, err))
	})
	root.CompletionOptions.DisableDefaultCmd = true
	if err := root.MarkPersistentFlagDirname("directory"); err != nil {
		panic(err) // the flag does not exist: a bug in this package
	}
	for _, g := range commandGroups(a.parts) {
		if g.title != "" {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
		for _, command := range g.commands {
			cmd := command(a)
			cmd.GroupID = g.id
			root.AddCommand(cmd)
			for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
				if c.Args == nil && !c.HasSubCommands() {
					c.Args, c.ValidArgsFunction = WantArgs(), cobra.NoFileCompletions
				}
			}
		}
	}
	root.SetHelpCommand(newHelp())
	annotateCommands(root, otherCommandNames())
	for _, p := range a.parts {
		annotateCommands(root, p.OtherNames)
	}
	return root
}

// annotateCommands stores the names that subcommands have in other tools, for suggestions.
func annotateCommands(root *cobra.Command, words map[string]map[string]string) {
	for below, meant := range words {
		cmd, _, err := root.Find(strings.Fields(below)[1:])
		if err != nil {
			panic(err) // the command does not exist, which is a bug in the table
		}
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		maps.Copy(cmd.Annotations, meant)
	}
}

// commandGroup is a group of commands for one purpose.
type commandGroup struct {
	id, title string
	commands  []func(*app) *cobra.Command
}

// commandGroups returns the groups of commands, including the commands of parts, in the order of the help
// text. The group without a title comes last.
func commandGroups(parts []Part) []commandGroup {
	type list = []func(*app) *cobra.Command
	table := []commandGroup{
		{"begin", "Begin:", list{newInit, newAdd, newRemove}},
		{"change", "Change and review:", list{newResolve, newRender, newDiff, newVerify}},
		{"upgrade", "Upgrade:", list{newOutdated, newUpgrade, newPromote, newPropose}},
		{"explain", "Find and explain:", list{newCatalog, newConfig, newDeclarations, newResources, newStatus, newTree, newWhy, newWhyNot}},
		{"deliver", "Deliver:", list{newPush, newImages, newMirror, newVendor}},
	}
	for _, p := range parts {
		g := commandGroup{id: p.Group, title: p.Title}
		for _, command := range p.Commands {
			g.commands = append(g.commands, func(a *app) *cobra.Command { return command(newHost(a)) })
		}
		table = append(table, g)
	}
	return append(table, []commandGroup{
		{"authors", "For authors of operators:", list{newBuild, newBundle}},
		{"", "", list{newCompletion, newSchema, newVersion, newHelpEnvironment}},
	}...)
}

// Group is the RunE function of a command that only has subcommands.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	msg := "unknown command %q for %q"
	if meant, known := cmd.Annotations[args[0]]; known {
		return Usagef(cmd, msg+" (did you mean %q?)", args[0], cmd.CommandPath(), meant)
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return Usagef(cmd, msg+" (did you mean %q?)", args[0], cmd.CommandPath(), near[0])
	}
	return Usagef(cmd, msg, args[0], cmd.CommandPath())
}

// otherCommandNames returns the names of commands in other tools. For each parent command, it maps
// the name in the other tool to the command of quayside.
func otherCommandNames() map[string]map[string]string {
	return map[string]map[string]string{
		"quayside": {
			"apply": "quayside render", "bom": "quayside images", "check": "quayside verify", "check-upgrade": "quayside upgrade --check", "create": "quayside init", "delete": "quayside remove",
			"deps": "quayside tree", "describe": "quayside catalog show", "explain": "quayside why", "export": "quayside render", "fetch": "quayside vendor",
			"feed": "quayside outdated", "find": "quayside catalog search", "generate": "quayside render", "get": "quayside add", "graph": "quayside catalog graph", "health": "quayside status",
			"info": "quayside catalog show", "install": "quayside add", "lint": "quayside verify", "list": "quayside tree", "lock": "quayside resolve",
			"ls": "quayside tree", "new": "quayside init", "plan": "quayside diff --upgrade", "publish": "quayside push",
			"pull": "quayside vendor", "rm": "quayside remove", "sbom": "quayside images", "search": "quayside catalog search", "show": "quayside catalog show",
			"sync": "quayside render", "template": "quayside render", "test": "quayside verify", "uninstall": "quayside remove", "update": "quayside upgrade",
			"validate": "quayside verify",
		},
		"quayside catalog": {
			"describe": "quayside catalog show", "find": "quayside catalog search", "get": "quayside catalog show", "info": "quayside catalog show",
			"ls": "quayside catalog list", "packages": "quayside catalog list", "versions": "quayside catalog show", "build": "quayside build", "push": "quayside push",
		},
		"quayside bundle": {"check": "quayside bundle validate", "build": "quayside build", "create": "quayside build", "lint": "quayside bundle validate", "publish": "quayside push", "push": "quayside push"},
	}
}

// otherFlagNames maps names of flags in other tools to flags of quayside.
func otherFlagNames() map[string]string {
	return map[string]string{
		"chdir": "directory", "cwd": "directory", "dir": "directory", "dry-run": "check", "format": "output", "json": "output=json", "project": "directory",
		"ns": "namespace", "to": "upgrade", "version": "upgrade", "write": "render", "yaml": "output=yaml", "y": "yes", "assume-yes": "yes", "force": "yes",
	}
}

// suggestFlag returns a suggestion for an unknown flag, to be appended to the message, or "".
func suggestFlag(cmd *cobra.Command, err error) string {
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
	meant, known := otherFlagNames()[none.GetSpecifiedName()]
	if name, _, _ := strings.Cut(meant, "="); known && slices.Contains(have, "--"+name) {
		return fmt.Sprintf(" (did you mean %q?)", "--"+meant)
	}
	return ""
}

// newHelp returns cobra's help command. It fails for an unknown topic.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef(cmd.Root(), "unknown help topic %q", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

// WantArgs requires one positional argument for each of names, which are used in error messages.
func WantArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usagef(cmd, "missing argument: %s", names[len(args)])
		case len(args) > len(names):
			return Usagef(cmd, "unexpected argument %q", args[len(names)])
		default:
			return nil
		}
	}
}

// Doc removes the indentation of a raw string in the source.
func Doc(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\t\n ")
}

// Examples is like Doc, but removes empty lines and indents all other lines by two columns.
func Examples(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(Doc(s), "\n\n", "\n"), "\n", "\n  ")
}

// someArgs requires at least one positional argument. name is used in error messages.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef(cmd, "missing argument: %s", name)
		}
		return nil
	}
}
