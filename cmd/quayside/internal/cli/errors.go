package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// usageError is returned for an invalid command line.
type usageError struct {
	command string // full name of the command, such as "quayside resolve"
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usagef returns the error for an invalid command line.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// report prints err and returns the exit code. No other code converts errors to exit codes. With -o
// json or yaml, it also prints a document with the failure, unless the command has printed one.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if err == errDiffers { //nolint:errorlint // the other errors of a joined error must be printed
		return exitDiffers
	}
	if code, ok := err.(printedError); ok { //nolint:errorlint // the other errors of a joined error must be printed
		return int(code)
	}
	a.printError(err)
	if a.document == nil {
		f := workspace.NewFailure()
		f.Add(err)
		if err := a.print(f, nil); err != nil {
			a.printError(err)
		}
	}
	var usage *usageError
	if errors.As(err, &usage) {
		a.log.Note("Run '%s --help' for usage.", usage.command)
	}
	return exitCode(err)
}

// exitCode returns the exit code for err. If err joins several errors, it returns the highest of their codes.
func exitCode(err error) int {
	var input *workspace.InputError
	if errors.As(err, &input) {
		return exitError // checked first: the other results may be wrong because of the unreadable catalog
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		code := exitOK
		for _, e := range many.Unwrap() {
			code = max(code, exitCode(e))
		}
		return code
	}
	var differs *workspace.DiffersError
	var stale *resolve.StaleError
	var conflict *explain.Conflict
	var policy *rules.PolicyError
	var held *workspace.HeldError
	var dropped *workspace.NoContentError
	var nothing *workspace.NothingReadError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &differs), errors.As(err, &stale), errors.Is(err, errDiffers):
		return exitDiffers
	case errors.As(err, &conflict), errors.As(err, &held), errors.As(err, &dropped), errors.As(err, &nothing):
		return exitNoSolution
	case errors.As(err, &policy):
		return exitPolicy
	default:
		return exitError
	}
}

// printError prints err. If err joins several errors, it prints each error on its own lines. It adds the
// prefix "error:", except to results of checks and resolutions and to faults that start with a position.
// Editors parse faults with a position like errors of a compiler.
func (a *app) printError(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			a.printError(e)
		}
		return
	}
	msg := strings.TrimSuffix(err.Error(), "\n")
	var input *workspace.InputError
	var list diag.List
	var edited *workspace.EditedError
	fault, isFault := err.(*diag.Error) //nolint:errorlint // a wrapped fault does not start with its position
	if trusted := isFault || errors.As(err, &input) || errors.As(err, &list) || errors.As(err, &edited) || exitCode(err) != exitError; !trusted {
		msg = sanitize.Line(msg) // other programs may put line breaks into their messages
	}
	if isFault && !fault.Pos.IsZero() || errors.As(err, &input) || exitCode(err) != exitError {
		a.log.Say("%s", msg)
		return
	}
	a.log.Say("%s %s", a.log.Paint(terminal.Red, "error:"), msg)
}

// notFound returns the error for an unknown name, with similar names as a hint.
func notFound(kind, name string, have []string) error {
	hint := diag.DidYouMean(name, have)
	if hint == "" && len(have) > 0 && len(have) <= 10 {
		hint = fmt.Sprintf(" (available: %s)", strings.Join(have, ", "))
	}
	return fmt.Errorf("no %s %q%s", kind, name, hint)
}
