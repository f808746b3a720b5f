package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
)

// addAll gives cmd, which is complete but for this, the flag --all. Flags that
// are about one workspace do not go with it.
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
				return usagef(cmd, "--all and --%s do not go together", name)
			}
		}
		if !slices.Contains([]string{"text", "json", "yaml", "markdown"}, a.output) {
			return usagef(cmd, "--all and --output %s do not go together", a.output)
		}
		return a.everywhere(func() error { return run(cmd, args) })
	}
}

// everywhereView is what a command prints with --all.
type everywhereView struct {
	Environments []environmentView `json:"environments" doc:"by directory"`
}

type environmentView struct {
	Directory string `json:"directory" doc:"where the workspace is, below the root of the Git repository or below -C"`
	ExitCode  int    `json:"exitCode" doc:"what the command would have ended with in this workspace alone"`
	Document  any    `json:"document" doc:"what it would have printed there"`
}

// everywhere runs a command in one workspace after the other. It ends with the
// worst of the exit codes.
func (a *app) everywhere(run func() error) error {
	top, names, err := project.Workspaces(a.dir)
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
			return err // it is the same everywhere
		}
		code := a.report(err)
		worst = max(worst, code)
		v.Environments = append(v.Environments, environmentView{name, code, a.document})
	}
	a.all = false
	if err := a.print(v, nil); err != nil || worst == exitOK {
		return err
	}
	return told(worst)
}

// title says which workspace it is whose output follows, on both streams, but
// once where both are the terminal.
func (a *app) title(i int, name string) {
	a.talk.Done()
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
		if a.out.TTY && a.talk.TTY {
			return
		}
	}
	if a.talk.Heading = ""; a.talk.Quiet {
		a.talk.Heading = name + ":"
	}
	a.talk.Note("%s:", name)
}

// told is an exit code whose reason is printed already.
type told int

func (t told) Error() string { return fmt.Sprintf("exit code %d", int(t)) }
