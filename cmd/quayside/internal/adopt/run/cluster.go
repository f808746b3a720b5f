// Package run executes a plan on a cluster step by step. After an interruption, it continues from its journal.
// No other part of quayside writes to a cluster.
package run

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// Client reads and changes a cluster. If dryRun is true, the API server validates a request but stores nothing.
type Client interface {
	verify.ProbeReader

	// Apply applies an object server-side and returns the result. If force is false and another manager owns a
	// field to change, it returns a conflict.
	Apply(ctx context.Context, o k8s.Object, manager string, force, dryRun bool) (k8s.Object, error)
	// Patch changes an object by a JSON patch or a merge patch.
	Patch(ctx context.Context, ref k8s.Ref, patch cluster.Patch, dryRun bool) (k8s.Object, error)
	// Delete deletes an object if it meets the preconditions in opt. A missing object is not
	// an error.
	Delete(ctx context.Context, ref k8s.Ref, opt cluster.DeleteOptions, dryRun bool) error
	// Record returns a release Secret of Helm with its content. o is the metadata of this Secret.
	Record(ctx context.Context, o k8s.Object) (k8s.Object, error)
	// Create creates an object. Only the return to OLM or Helm uses it.
	Create(ctx context.Context, o k8s.Object, dryRun bool) (k8s.Object, error)
}

// Manager is the field manager of all changes except server-side apply, which uses the manager in the plan.
const Manager = "quayside-adopt"
