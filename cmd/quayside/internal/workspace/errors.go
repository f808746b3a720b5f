package workspace

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve"
	"github.com/quayside/quayside/resolve/explain"
)

// DiffersError is returned by a check that finds differences. The command has already printed them. The
// message contains the remedy.
type DiffersError struct{ Msg string }

// Error returns the message.
func (e *DiffersError) Error() string { return e.Msg }

// AsDiffersErrors returns the faults in err and in the errors that it joins, each as a *DiffersError
// with its position.
func AsDiffersErrors(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		if _, isList := err.(diag.List); !isList { //nolint:errorlint // a list is one error
			var out error
			for _, e := range joined.Unwrap() {
				out = errors.Join(out, AsDiffersErrors(e))
			}
			return out
		}
	}
	var faults diag.List
	faults.Add(diag.Pos{}, err)
	for i, f := range faults {
		faults[i] = &diag.Error{Pos: f.Pos, Err: &DiffersError{Msg: (&diag.Error{Msg: f.Msg, Err: f.Err}).Error()}, Hint: f.Hint}
	}
	return faults.Err()
}

// EditedError is returned if files of the rendered tree were edited by hand and would be
// overwritten.
type EditedError struct {
	Output string
	Paths  []string // relative to the tree
}

// Error lists the edited files, and how to keep the changes.
func (e *EditedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: edited by hand (%s):\n", sanitize.Line(e.Output), diag.Count(len(e.Paths), "file"))
	for _, name := range e.Paths {
		fmt.Fprintf(&b, "  %s\n", sanitize.Line(path.Join(e.Output, name)))
	}
	b.WriteString("  hint: " + editedHint)
	return b.String()
}

const editedHint = "put changes in overlays/<cluster>/, which quayside never writes; 'quayside render --force' overwrites edited files"

// TreeError converts an error about edited files of the rendered tree to an
// [*EditedError].
func TreeError(output string, err error) error {
	var edited *filetree.EditedError
	if errors.As(err, &edited) {
		return &EditedError{output, edited.Paths}
	}
	return err
}

// InputError is returned if a resolution failed because of an unreadable catalog, and not because
// of a conflict.
type InputError struct{ Err error }

// Error returns the faults of the catalog.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the faults of the catalog.
func (e *InputError) Unwrap() error { return e.Err }

// fetchError is returned in an unattended run if bundles cannot be fetched or verified.
type fetchError struct{ err error }

func (e *fetchError) Error() string { return e.err.Error() }
func (e *fetchError) Unwrap() error { return e.err }

// NoContentError is returned for a bundle that is neither in the store nor in its catalog. The catalog may have
// dropped the bundle.
type NoContentError struct{ Catalog catalog.ID }

// Error names the catalog.
func (e *NoContentError) Error() string {
	return fmt.Sprintf("catalog %q does not contain the bundle's content", e.Catalog)
}

// Failure contains the errors of a command, for output as JSON.
type Failure struct {
	Conflicts []*explain.Conflict `json:"conflicts" doc:"requirements that exclude each other"`
	Errors    []diag.Fault        `json:"errors" doc:"other errors"`
}

// NewFailure returns an empty Failure.
func NewFailure() Failure {
	return Failure{Conflicts: []*explain.Conflict{}, Errors: []diag.Fault{}}
}

// Add adds err. If err joins several errors, it adds each. It ignores nil and *resolve.StaleError.
func (f *Failure) Add(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			f.Add(e)
		}
		return
	}
	var stale *resolve.StaleError
	var conflict *explain.Conflict
	var nothing *NothingReadError
	switch {
	case err == nil, errors.As(err, &stale):
	case errors.As(err, &nothing):
		f.Add(nothing.Faults)
	case errors.As(err, &conflict):
		f.Conflicts = append(f.Conflicts, conflict)
	default:
		f.Errors = append(f.Errors, diag.FaultOf(err))
	}
}
