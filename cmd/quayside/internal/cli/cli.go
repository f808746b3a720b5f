// Package cli implements the command line. A command parses flags, opens the workspace, calls one
// function, prints the result, and converts errors to exit codes. The logic is in package workspace
// and the packages that use it.
//
// Start from [Main] and the table of commands. Each command has its own file, with a struct for its
// options and a run method.
package cli

import (
	"errors"
	"io"
	stdlog "log"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/terminal"
)

// Exit codes of all commands.
const (
	exitOK         = 0 // success, up to date, no differences
	exitDiffers    = 1 // out of date, or differences
	exitError      = 2 // usage, input, registry or disk error
	exitNoSolution = 3 // the declarations cannot be resolved, or none can be read
	exitPolicy     = 4 // refused by a policy
)

// app contains the inputs and the state of one run of the program.
type app struct {
	parts   []Part
	stdin   io.Reader
	prompt  *terminal.Prompt
	out     *terminal.Terminal // standard output
	log     *terminal.Logger   // standard error
	env     environment
	dir     string   // value of -C; empty: search for quayside.yaml upwards
	version string   // version of this program
	offline bool     // value of --offline, if the command has this flag
	layout  string   // OCI layout with the images; empty: the vendored layout
	output  string   // value of -o, if the command has this flag
	all     bool     // value of --all, if the command has this flag
	now     timeFlag // value of --now, if the command has this flag

	top       string // with --all, the directory that contains all workspaces
	workspace string // with --all, the directory of the current workspace
	document  any    // document that the command printed; with --all, for the current workspace

	documents    map[*cobra.Command][]any // documents that each command can print with -o json
	writer       string                   // name of the command if it writes to workspaces; otherwise empty
	releases     map[string]func()        // functions that release the locked work trees, by directory
	isCompletion bool                     // whether the shell requests completions
}

// Main runs one command, which this package or one of parts defines, and returns its exit code. It
// writes data to stdout, and progress and errors to stderr. environ contains "KEY=value" pairs; the
// last value of a key applies. Apart from files and the network, Main has no global state.
func Main(parts []Part, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	stdlog.SetOutput(io.Discard) // kustomize writes notes to the standard logger, without the names of files
	env := newEnvironment(environ)
	log := terminal.NewLogger(terminal.New(stderr, env))
	a := &app{
		parts:   parts,
		stdin:   stdin,
		prompt:  terminal.NewPrompt(stdin, log),
		out:     terminal.New(stdout, env),
		log:     log,
		env:     env,
		version: buildVersion(),

		isCompletion: len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd),
	}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.Execute()
	a.log.Done()
	a.log.Hint()
	a.log.Detail("%s", a.log.FinalMessage())
	if writeErr := a.out.Failed; writeErr != nil && !errors.Is(err, writeErr) {
		err = errors.Join(err, writeErr)
	}
	if a.document == nil {
		a.output = outputOf(args) // cobra may have returned an error before it parsed -o
	}
	return a.report(err)
}

// environment holds the environment variables of the program.
type environment map[string]string

func newEnvironment(environ []string) environment {
	env := make(environment, len(environ))
	for _, kv := range environ {
		if key, value, ok := strings.Cut(kv, "="); ok {
			env[key] = value
		}
	}
	return env
}

// getenv returns an environment variable, or "" if it is not set.
func (a *app) getenv(key string) string { return a.env[key] }
