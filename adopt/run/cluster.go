// Package run does to a cluster what a plan says, step by step, keeps a journal of
// it, and goes on where it was stopped. It is the only part of quayside that
// writes to a cluster.
package run

import (
	"context"

	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kobj"
)

// Cluster is what is read and written. Whatever writes takes dryRun, with which the
// API server checks everything and stores nothing.
type Cluster interface {
	verify.Reader

	// Apply applies an object server-side, and returns what is there then. Without
	// force another manager's field is a conflict.
	Apply(ctx context.Context, o kobj.Object, manager string, force, dryRun bool) (kobj.Object, error)
	// Patch changes an object by a JSON patch or a merge patch.
	Patch(ctx context.Context, ref kobj.Ref, patch cluster.Patch, dryRun bool) (kobj.Object, error)
	// Delete deletes an object that still is what opt says; one that is gone is no
	// error.
	Delete(ctx context.Context, ref kobj.Ref, opt cluster.Deletion, dryRun bool) error
	// Create creates an object, for the way back.
	Create(ctx context.Context, o kobj.Object, dryRun bool) (kobj.Object, error)
}

// Manager is the field manager of what is changed otherwise than by applying it.
const Manager = "quayside-adopt"
