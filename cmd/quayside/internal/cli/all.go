package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/sanitize"
)

// addAll adds the flag --all to cmd. Call it after cmd.RunE is set. --all cannot be combined with
// the flags in without, which are for a single workspace.
func addAll(cmd *cobra.Command, a *app, without ...string) {
	addAllWithSearch(cmd, a, func(top string, _ []string) ([]string, error) { return workspacesBelow(top) }, without...)
}

// addAllWithSearch is like addAll, but searches for workspaces with search. The results of search
// are directories relative to top.
func addAllWithSearch(cmd *cobra.Command, a *app, search func(top string, args []string) ([]string, error), without ...string) {
	cmd.Flags().BoolVar(&a.all, "all", false, "run in every workspace below the root of the Git repository, or below -C")
	a.documents[cmd] = append(a.documents[cmd], everywhereView{})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !a.all {
			return run(cmd, args)
		}
		for _, name := range without {
			if cmd.Flags().Changed(name) {
				return Usagef(cmd, "--all cannot be used with --%s", name)
			}
		}
		if !slices.Contains([]string{"text", "json", "yaml", "markdown"}, a.output) {
			return Usagef(cmd, "--all cannot be used with --output %s", a.output)
		}
		top := workspace.TopDir(a.dir)
		names, err := search(top, args)
		if err != nil {
			return err
		}
		names = workspace.UpstreamFirst(top, names)
		return a.inEachWorkspace(top, names, func() error { return run(cmd, args) })
	}
}

// workspacesBelow returns the directories with a workspace, at and below top, relative to top. It
// returns an error if there are none.
func workspacesBelow(top string) ([]string, error) {
	names, err := workspace.Workspaces(top)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no workspace in or below %s", top)
	}
	return names, err
}

// everywhereView is the output of a command with --all.
type everywhereView struct {
	Environments []environmentView `json:"environments" doc:"environments, sorted by directory; an environment comes after its upstream environment"`
}

type environmentView struct {
	Directory string `json:"directory" doc:"directory of the workspace, relative to the root of the Git repository or to -C"`
	ExitCode  int    `json:"exitCode" doc:"exit code of the command for this workspace alone"`
	Document  any    `json:"document" doc:"output of the command in the environment"`
}

// inEachWorkspace runs a command in each of the named workspaces below top, one after the other. It
// returns the worst exit code as an error.
func (a *app) inEachWorkspace(top string, names []string, run func() error) error {
	v := everywhereView{Environments: []environmentView{}}
	worst := exitOK
	for i, name := range names {
		a.top, a.workspace, a.document = top, filepath.Join(top, filepath.FromSlash(name)), nil
		a.printTitle(i, name)
		err := run()
		var usage *usageError
		if errors.As(err, &usage) {
			return err // the command line is invalid in every workspace
		}
		code := a.report(err)
		worst = max(worst, code)
		if a.document != nil || code != exitOK { // the command has no output for other workspaces
			v.Environments = append(v.Environments, environmentView{name, code, a.document})
		}
	}
	a.all = false
	if err := a.print(v, nil); err != nil || worst == exitOK {
		return err
	}
	return printedError(worst)
}

// printTitle prints the name of workspace i as a heading, on stdout and stderr. If both are terminals, it
// prints the name only once.
func (a *app) printTitle(i int, name string) {
	a.log.Done()
	name = sanitize.Line(name)
	heading := name + ":"
	switch a.output {
	case "markdown":
		heading = "# " + name + "\n"
		fallthrough
	case "text":
		if i > 0 {
			heading = "\n" + heading
		}
		fmt.Fprintln(a.out, heading)
		if a.out.TTY && a.log.TTY {
			return
		}
	}
	if a.log.Heading = ""; a.log.Quiet {
		a.log.Heading = name + ":"
	}
	a.log.Note("%s:", name)
}

// printedError is an exit code. The reason for it has already been printed.
type printedError int

func (t printedError) Error() string { return fmt.Sprintf("exit code %d", int(t)) }
