// Package run executes a plan on a cluster step by step. It writes a journal, so that it can
// continue after an interruption. No other part of quayside writes to a cluster.
package run

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// Client reads and changes a cluster. With dryRun, the API server validates a request but stores
// nothing.
type Client interface {
	verify.ProbeReader

	// Apply applies an object server-side and returns the result. Without force, it returns a
	// conflict if it would change a field of another manager.
	Apply(ctx context.Context, o k8s.Object, manager string, force, dryRun bool) (k8s.Object, error)
	// Patch changes an object by a JSON patch or a merge patch.
	Patch(ctx context.Context, ref k8s.Ref, patch cluster.Patch, dryRun bool) (k8s.Object, error)
	// Delete deletes an object if it meets the preconditions in opt. A missing object is not
	// an error.
	Delete(ctx context.Context, ref k8s.Ref, opt cluster.DeleteOptions, dryRun bool) error
	// Record returns the Secret of a release of Helm with its content. o is its metadata.
	Record(ctx context.Context, o k8s.Object) (k8s.Object, error)
	// Create creates an object. Only the return to OLM or Helm uses it.
	Create(ctx context.Context, o k8s.Object, dryRun bool) (k8s.Object, error)
}

// Manager is the field manager of all changes, except server-side apply: that uses the manager in
// the plan.
const Manager = "quayside-adopt"
