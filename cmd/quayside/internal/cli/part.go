package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/terminal"
)

// Part is a set of commands from another package, with their schemas.
type Part struct {
	Group      string // name of the group of commands, such as "leave"
	Title      string // heading of the group in help, such as "Leave OLM:"
	Commands   []func(Host) *cobra.Command
	Schemas    map[string]func() []byte     // schemas of files, by name
	OtherNames map[string]map[string]string // for each parent command: name of a command in another tool, and the corresponding command of quayside
}

// Host gives commands in other packages access to the program.
type Host struct {
	*app

	Stdin   io.Reader
	Prompt  *terminal.Prompt
	Out     *terminal.Terminal // standard output, for data
	Log     *terminal.Logger   // standard error, for progress, notes and warnings
	Offline *bool              // variable for a flag --offline
}

func newHost(a *app) Host { return Host{a, a.stdin, a.prompt, a.out, a.log, &a.offline} }

// Open opens the workspace at -C. Without -C, it opens the nearest one in the current directory and
// its parents.
func (h Host) Open() (*workspace.Project, error) { return h.open() }

// Path returns the path for a path argument, which is relative to -C.
func (h Host) Path(name string) string { return h.argPath(name) }

// ReadArg reads the file of a path argument.
func (h Host) ReadArg(name string) ([]byte, error) { return h.readArg(name) }

// AddOutput adds the flag -o to cmd. documents are zero values of its JSON and YAML output.
func (h Host) AddOutput(cmd *cobra.Command, documents ...any) {
	addOutput(cmd, h.app, nil, documents...)
}

// IsText reports whether the output format is text.
func (h Host) IsText() bool { return h.output == "text" }

// Print prints v in the format of -o. For a format other than JSON and YAML, it calls text.
func (h Host) Print(v any, text func(w io.Writer)) error { return h.print(v, text) }

// AddWriter makes cmd lock the work tree of each workspace that it opens. Other commands then
// cannot write there until cmd ends. If one of the flags in without is set, cmd takes no lock.
func (h Host) AddWriter(cmd *cobra.Command, without ...string) { addWriter(cmd, h.app, without...) }

// AddChoice adds a flag with a fixed set of values to cmd.
func (h Host) AddChoice(cmd *cobra.Command, value *string, name, usage string, words []string) {
	cmd.Flags().Var(&format{value: value, known: words}, name, usage)
	h.complete(cmd, name, words)
}

// AddCluster adds the flag --cluster to cmd.
func (h Host) AddCluster(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "cluster", "", "`NAME` of the cluster in quayside.yaml (default: the only one)")
	h.offer(cmd, "cluster", h.completions(edit.Completer.Clusters))
}

// Login contains the flags that select a live cluster.
type Login struct {
	host  Host
	flags loginFlags
}

// AddLogin adds the flags --context and --kubeconfig to cmd.
func (h Host) AddLogin(cmd *cobra.Command) *Login {
	l := &Login{host: h}
	l.flags.addFlags(cmd, h.app)
	return l
}

// Given reports whether one of the flags is set.
func (l *Login) Given() bool { return l.flags != loginFlags{} }

// Open returns a client for the selected cluster.
func (l *Login) Open() (*cluster.Client, error) { return cluster.Open(l.flags.options(l.host.app)) }
