// Package run does to a cluster what a plan says, step by step, keeps a journal of
// it, and goes on where it was stopped. It is the only part of quayside that
// writes to a cluster.
package run

import (
	"context"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
)

// Cluster is what is read and written. Whatever writes takes dryRun, with which the
// API server checks everything and stores nothing.
type Cluster interface {
	verify.Reader

	// Apply applies an object server-side, and returns what is there then. Without
	// force another manager's field is a *ConflictError.
	Apply(ctx context.Context, o kobj.Object, manager string, force, dryRun bool) (kobj.Object, error)
	// Patch changes an object by a JSON patch or a merge patch.
	Patch(ctx context.Context, ref plan.Ref, patch Patch, dryRun bool) (kobj.Object, error)
	// Delete deletes an object that still is what opt says; one that is gone is no
	// error.
	Delete(ctx context.Context, ref plan.Ref, opt Deletion, dryRun bool) error
	// Create creates an object, for the way back.
	Create(ctx context.Context, o kobj.Object, dryRun bool) (kobj.Object, error)
}

// Manager is the field manager of what is changed otherwise than by applying it.
const Manager = "quayside-adopt"

// Patch is one of the two sorts of patches; the other is empty.
type Patch struct {
	JSON  []Operation    // a JSON patch
	Merge map[string]any // a merge patch
}

// Operation is one operation of a JSON patch.
type Operation struct {
	Op    string `json:"op"` // "test", "replace", "remove", "add"
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Deletion says what an object must still be, and what becomes of what it owns.
type Deletion struct {
	UID             string
	ResourceVersion string // empty: whatever it is
	Orphan          bool   // what it owns stays; else the garbage collector takes it
}
