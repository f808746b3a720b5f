package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/resolve"
)

// usageError is a command line that cannot be carried out as it stands.
type usageError struct {
	command string // "quayside resolve"
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// report prints err and returns the exit code that it stands for. This is the
// one place where errors become exit codes. Where a document is asked for
// and none was printed, there is one of what went wrong.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if err == errDiffers { //nolint:errorlint // said alone: everything is printed already
		return exitDiffers
	}
	if code, ok := err.(told); ok { //nolint:errorlint // likewise
		return int(code)
	}
	a.printError(err)
	if a.document == nil {
		f := project.NewFailure()
		f.Add(err)
		if err := a.print(f, nil); err != nil {
			a.printError(err)
		}
	}
	var usage *usageError
	if errors.As(err, &usage) {
		a.talk.Note("Run '%s --help' for usage.", usage.command)
	}
	return exitCode(err)
}

// exitCode returns the gravest of the codes that err and what it joins stand
// for.
func exitCode(err error) int {
	var input *project.InputError
	if errors.As(err, &input) {
		return exitError // whatever else was found: with the catalog it may look otherwise
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		code := exitOK
		for _, e := range many.Unwrap() {
			code = max(code, exitCode(e))
		}
		return code
	}
	var differs *project.DiffersError
	var stale *resolve.StaleError
	var conflict *resolve.Conflict
	var policy *project.PolicyError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &differs), errors.As(err, &stale):
		return exitDiffers
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.As(err, &conflict):
		return exitNoSolution
	case errors.As(err, &policy):
		return exitPolicy
	default:
		return exitError
	}
}

// printError prints each fault on a line of its own. A fault that begins with
// a place in a file is printed as it is, as compilers do, so that an editor
// finds its way; so is what a check or a resolution found. Anything else is
// marked as an error.
func (a *app) printError(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			a.printError(e)
		}
		return
	}
	msg := strings.TrimSuffix(err.Error(), "\n")
	var input *project.InputError
	var list diag.List
	var edited *project.EditedError
	if ours := positioned(err) || errors.As(err, &input) || errors.As(err, &list) || errors.As(err, &edited) || exitCode(err) != exitError; !ours {
		msg = inert.Line(msg) // its line breaks are not the program's
	}
	if positioned(err) || errors.As(err, &input) || exitCode(err) != exitError {
		a.talk.Say("%s", msg)
		return
	}
	a.talk.Say("%s %s", a.talk.Paint(terminal.Red, "error:"), msg)
}

// positioned reports whether err begins with a place in a file.
func positioned(err error) bool {
	one, ok := err.(*diag.Error) //nolint:errorlint // a wrapped fault begins with the words around it
	return ok && !one.Pos.IsZero()
}

// notFound says that there is no name, and what it may have been meant for.
func notFound(kind, name string, have []string) error {
	hint := diag.DidYouMean(name, have)
	if hint == "" && len(have) > 0 && len(have) <= 10 {
		hint = fmt.Sprintf(" (have %s)", strings.Join(have, ", "))
	}
	return fmt.Errorf("no %s %q%s", kind, name, hint)
}
