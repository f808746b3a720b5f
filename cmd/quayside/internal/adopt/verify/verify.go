// Package verify checks that adopting operators from OLM does not change the state of a cluster: UIDs, pods,
// conversion of custom resources, aggregated APIs, and the permissions of every ServiceAccount.
//
// The package only reads from a cluster, by a [Reader]. [Capture] records the state before the first step.
// [Check] evaluates one check of a step by comparison with that state. [Verify] evaluates all checks that are
// due.
package verify

import (
	"context"

	"github.com/quayside/quayside/internal/k8s"
)

// Reader reads a cluster. It is safe for concurrent use.
type Reader interface {
	// Get returns an object, or nil if it does not exist.
	Get(ctx context.Context, ref k8s.Ref) (k8s.Object, error)
	// List returns the objects of a kind that match a label selector. If namespace is empty, it lists all
	// namespaces. If the cluster does not serve the kind, it returns no objects.
	List(ctx context.Context, apiVersion, kind, namespace, labels string) ([]k8s.Object, error)
	// Allowed returns the result of a SubjectAccessReview.
	Allowed(ctx context.Context, r Review) (bool, error)
}

// Review is a SubjectAccessReview: the question whether a ServiceAccount has a permission.
type Review struct {
	Account     string `json:"account"`             // user name: system:serviceaccount:<namespace>:<name>
	Namespace   string `json:"namespace,omitempty"` // empty: permission in the whole cluster
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"` // empty: all objects
	Path        string `json:"path,omitempty"` // non-resource URL, such as "/metrics"
}
