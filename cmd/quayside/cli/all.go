package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/inert"
)

// addAll adds the flag --all to cmd, which must have all its other flags. The flags in without
// apply to one workspace, and cannot be combined with --all.
func addAll(cmd *cobra.Command, a *app, without ...string) {
	cmd.Flags().BoolVar(&a.all, "all", false, "run in every workspace below the root of the Git repository, or below -C")
	a.documents[cmd] = append(a.documents[cmd], everywhereView{})
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !a.all {
			return run(cmd, args)
		}
		for _, name := range without {
			if cmd.Flags().Changed(name) {
				return Usagef(cmd, "--all and --%s do not go together", name)
			}
		}
		if !slices.Contains([]string{"text", "json", "yaml", "markdown"}, a.output) {
			return Usagef(cmd, "--all and --output %s do not go together", a.output)
		}
		return a.inEachWorkspace(func() error { return run(cmd, args) })
	}
}

// everywhereView is the output of a command with --all.
type everywhereView struct {
	Environments []environmentView `json:"environments" doc:"by directory"`
}

type environmentView struct {
	Directory string `json:"directory" doc:"where the workspace is, below the root of the Git repository or below -C"`
	ExitCode  int    `json:"exitCode" doc:"exit code of the command for this workspace alone"`
	Document  any    `json:"document" doc:"output of the command there"`
}

// inEachWorkspace runs a command in each workspace. The error has the highest exit code.
func (a *app) inEachWorkspace(run func() error) error {
	top, names, err := workspace.Workspaces(a.dir)
	if err != nil {
		return err
	}
	var v everywhereView
	worst := exitOK
	for i, name := range names {
		a.top, a.workspace, a.document = top, filepath.Join(top, filepath.FromSlash(name)), nil
		a.title(i, name)
		err := run()
		var usage *usageError
		if errors.As(err, &usage) {
			return err // other workspaces would give the same error
		}
		code := a.report(err)
		worst = max(worst, code)
		v.Environments = append(v.Environments, environmentView{name, code, a.document})
	}
	a.all = false
	if err := a.print(v, nil); err != nil || worst == exitOK {
		return err
	}
	return printedError(worst)
}

// title prints the name of workspace i on stdout and stderr, but only once if both are a terminal.
func (a *app) title(i int, name string) {
	a.log.Done()
	name = inert.Line(name)
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

// printedError is an exit code whose reason has been printed.
type printedError int

func (t printedError) Error() string { return fmt.Sprintf("exit code %d", int(t)) }
