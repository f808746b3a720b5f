// Package cli is the command line: it reads flags, opens the workspace, calls
// one function, prints what it returns and turns errors into exit codes. It
// decides nothing about operators by itself: what can be done with a workspace
// is internal/project and what stands on it.
//
// Start from [Main] and the table of commands; every command is one file, with
// an options struct and a run method.
package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/terminal"
)

// The exit codes of every command.
const (
	exitOK         = 0 // done, in step, no differences
	exitDiffers    = 1 // something is out of step, or differs
	exitError      = 2 // usage, input, registry, disk
	exitNoSolution = 3 // the declarations cannot hold together
	exitPolicy     = 4 // a policy said no
)

// app is what one run of the program was handed from outside.
type app struct {
	stdin   io.Reader
	prompt  *terminal.Prompt
	out     *terminal.Terminal // data
	talk    *terminal.Talk     // everything else
	env     environment
	dir     string // -C; empty means: look for quayside.yaml upwards
	version string // of this binary, as it was built
	offline bool   // --offline, of the commands that have it
	layout  string // what images are read from in place of the vendored layout; empty for that
	output  string // -o, likewise
	all     bool   // --all, likewise

	top       string // with --all, the directory below which all are
	workspace string // likewise, where the one is whose turn it is
	document  any    // what was printed; with --all, in that one

	documents map[*cobra.Command][]any // what each command prints with -o json
	completes bool                     // a shell asks for words
}

// Main runs one command and returns its exit code. Data goes to stdout, talk
// and errors to stderr; environ holds "KEY=value" pairs, the last of a key
// wins. Main reads no global state but the file system and the network.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	env := newEnvironment(environ)
	talk := terminal.NewTalk(terminal.New(stderr, env))
	a := &app{
		stdin:   stdin,
		prompt:  terminal.NewPrompt(stdin, talk),
		out:     terminal.New(stdout, env),
		talk:    talk,
		env:     env,
		version: buildVersion(),

		completes: len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd),
	}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.Execute()
	a.talk.Done()
	a.talk.Detail("%s", a.talk.Ended())
	if lost := a.out.Failed; lost != nil && !errors.Is(err, lost) {
		err = errors.Join(err, lost)
	}
	if a.document == nil {
		a.output = outputOf(args) // it may not have come to this
	}
	return a.report(err)
}

// environment holds the variables that the program was started with.
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

// getenv returns a variable, "" where there is none.
func (a *app) getenv(key string) string { return a.env[key] }
