package project

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/resolve"
)

// DiffersError says that a check found something out of step. What differs has
// been said already; the message says what to do.
type DiffersError struct{ Msg string }

// Error returns the message.
func (e *DiffersError) Error() string { return e.Msg }

// PolicyError says that a policy refused what was found.
type PolicyError struct{ Msg string }

// Error returns the message.
func (e *PolicyError) Error() string { return e.Msg }

// EditedError is the refusal to overwrite files of the rendered tree that
// somebody edited.
type EditedError struct {
	Output string
	Paths  []string // from the root of the tree
}

// Error lists the files, and explains where changes belong.
func (e *EditedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: edited by hand (%s):\n", inert.Line(e.Output), diag.Count(len(e.Paths), "file"))
	for _, name := range e.Paths {
		fmt.Fprintf(&b, "  %s\n", inert.Line(path.Join(e.Output, name)))
	}
	b.WriteString("  hint: put changes in overlays/<cluster>/, which quayside never writes; 'quayside render --force' overwrites these files")
	return b.String()
}

// TreeError returns an error about the rendered tree, for edited files an
// [*EditedError].
func (p *Project) TreeError(err error) error {
	var edited *filetree.EditedError
	if errors.As(err, &edited) {
		return &EditedError{p.Settings.Output, edited.Paths}
	}
	return err
}

// InputError is a resolution that failed for want of a catalog, not of a
// solution.
type InputError struct{ Err error }

// Error returns what is wrong with the catalog.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the catalog.
func (e *InputError) Unwrap() error { return e.Err }

// Failure is what went wrong, as a document.
type Failure struct {
	Conflicts []*resolve.Conflict `json:"conflicts" doc:"what cannot hold together"`
	Errors    []diag.Fault        `json:"errors" doc:"whatever else is wrong"`
}

// NewFailure returns one of nothing.
func NewFailure() Failure {
	return Failure{Conflicts: []*resolve.Conflict{}, Errors: []diag.Fault{}}
}

// Add takes in err and what it joins.
func (f *Failure) Add(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			f.Add(e)
		}
		return
	}
	var stale *resolve.StaleError
	var conflict *resolve.Conflict
	switch {
	case err == nil, errors.As(err, &stale):
	case errors.As(err, &conflict):
		f.Conflicts = append(f.Conflicts, conflict)
	default:
		f.Errors = append(f.Errors, diag.FaultOf(err))
	}
}
