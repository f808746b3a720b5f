// Package verify says whether a cluster kept what it must keep while operators
// leave OLM: UIDs, pods, conversion of custom resources, aggregated APIs and what
// every ServiceAccount may do.
//
// It only reads, through a [Reader]. [Capture] writes down what there is before
// the first step, [Check] asks one condition of a plan's step, and [Compare] tells
// in what two captures differ that the plan does not mean to change.
package verify

import (
	"context"

	"github.com/quayside/quayside/internal/kobj"
)

// Reader is what is read of a cluster. It is for use by several goroutines at once.
type Reader interface {
	// Get returns an object; nil where there is none.
	Get(ctx context.Context, ref kobj.Ref) (kobj.Object, error)
	// List returns the objects of a kind with these labels, in all namespaces where
	// namespace is empty; none where the kind is not served.
	List(ctx context.Context, apiVersion, kind, namespace, labels string) ([]kobj.Object, error)
	// Allowed reports what a SubjectAccessReview says.
	Allowed(ctx context.Context, r Review) (bool, error)
}

// Review asks whether a ServiceAccount may do something.
type Review struct {
	Account     string `json:"account"`             // system:serviceaccount:<namespace>:<name>
	Namespace   string `json:"namespace,omitempty"` // empty: in the whole cluster
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"` // empty: all
	Path        string `json:"path,omitempty"` // of what is no resource: "/metrics"
}
