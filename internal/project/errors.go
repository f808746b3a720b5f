package project

// DiffersError says that a check found something out of step. What differs has
// been said already; the message says what to do.
type DiffersError struct{ Msg string }

// Error returns the message.
func (e *DiffersError) Error() string { return e.Msg }

// PolicyError says that a policy refused what was found.
type PolicyError struct{ Msg string }

// Error returns the message.
func (e *PolicyError) Error() string { return e.Msg }

// InputError is a resolution that failed for want of a catalog, not of a
// solution.
type InputError struct{ Err error }

// Error returns what is wrong with the catalog.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the catalog.
func (e *InputError) Unwrap() error { return e.Err }
