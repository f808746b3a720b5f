package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
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

// differsError says that a check found something out of step. What differs
// has been printed already; the message says what to do.
type differsError struct{ msg string }

func (e *differsError) Error() string { return e.msg }

// report prints err and returns the exit code that it stands for. This is the
// one place where errors become exit codes.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	var usage *usageError
	var differs *differsError
	switch {
	case errors.As(err, &usage):
		a.talk.note("%s %s", a.talk.paint(red, "error:"), err)
		a.talk.note("Run '%s --help' for usage.", usage.command)
		return exitError
	case errors.As(err, &differs):
		a.talk.note("%s", err)
		return exitDiffers
	}
	a.printError(err)
	return exitError
}

// printError prints each fault on a line of its own. A fault that begins with
// a place in a file is printed as it is, as compilers do, so that an editor
// finds its way; anything else is marked as an error.
func (a *app) printError(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // a list inside a wrapped error belongs to the words around it
		for _, e := range many.Unwrap() {
			a.printError(e)
		}
		return
	}
	msg := strings.TrimSuffix(err.Error(), "\n")
	if positioned(err) {
		a.talk.note("%s", msg)
		return
	}
	a.talk.note("%s %s", a.talk.paint(red, "error:"), msg)
}

// positioned reports whether err begins with a place in a file.
func positioned(err error) bool {
	one, ok := err.(*diag.Error) //nolint:errorlint // a wrapped fault begins with the words around it
	return ok && !one.Pos.IsZero()
}
