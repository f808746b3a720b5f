package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// maxSingleReads is the maximum number of objects of a kind to get one by one, instead of listing
// the kind.
const maxSingleReads = 3

// kind is a kind of object to read, with the objects that were read.
type kind struct {
	apiVersion, name string
	content          bool // whether to read the content, not only the metadata
	managedFields    bool // whether to keep metadata.managedFields
	refs             []v1alpha1.ObjectReference
	observed         map[string]v1alpha1.Observed // results by "namespace/name"
}

func namespacedName(namespace, name string) string { return namespace + "/" + name }

// Read reads the objects in refs, and returns the results in the same order. If a single object cannot be read, its
// result contains the reason. Only an unreachable cluster (an *UnreachableError) or the end of ctx is an error.
func (c *Client) Read(ctx context.Context, refs []v1alpha1.ObjectReference) ([]v1alpha1.Observed, error) {
	kinds, kindOf := groupByKind(refs)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.runParallel(len(kinds), func(i int) {
		if err := c.readKind(ctx, kinds[i]); err != nil {
			stop(err)
		}
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out := make([]v1alpha1.Observed, len(refs))
	for i, ref := range refs {
		out[i] = kindOf[i].observed[namespacedName(ref.Namespace, ref.Name)]
		out[i].Ref = ref
	}
	return out, nil
}

// groupByKind groups refs by kind. It returns the kinds, and the kind of each ref. An object that
// refs contains twice is read once.
func groupByKind(refs []v1alpha1.ObjectReference) ([]*kind, []*kind) {
	var kinds []*kind
	byName := map[[2]string]*kind{}
	kindOf := make([]*kind, len(refs))
	for i, ref := range refs {
		key := [2]string{ref.APIVersion, ref.Kind}
		k := byName[key]
		if k == nil {
			k = &kind{apiVersion: ref.APIVersion, name: ref.Kind, observed: map[string]v1alpha1.Observed{}}
			byName[key] = k
			kinds = append(kinds, k)
		}
		kindOf[i] = k
		at := namespacedName(ref.Namespace, ref.Name)
		if _, twice := k.observed[at]; !twice {
			k.observed[at] = v1alpha1.Observed{Ref: ref}
			k.refs = append(k.refs, ref)
		}
	}
	return kinds, kindOf
}

// runParallel calls do once with each number from 0 to n-1, concurrently, and waits for all calls.
func (c *Client) runParallel(n int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2*maxRequests)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}

// readKind reads the requested objects of one kind.
func (c *Client) readKind(ctx context.Context, k *kind) error {
	r, err := c.resource(ctx, k.apiVersion, k.name)
	if err != nil {
		return k.failAll(err)
	}
	missing := k.refs
	if len(k.refs) > maxSingleReads {
		listed, err := c.listKind(ctx, r, k)
		switch {
		case hasCode(err, http.StatusRequestEntityTooLarge, http.StatusForbidden, http.StatusGone):
			// The list failed: get the objects one by one.
		case err != nil:
			return k.failAll(err)
		}
		missing = slices.DeleteFunc(slices.Clone(k.refs), func(ref v1alpha1.ObjectReference) bool {
			at := namespacedName(ref.Namespace, ref.Name)
			o, ok := listed[at]
			if ok {
				k.observed[at] = v1alpha1.Observed{Object: o}
			}
			return ok
		})
	}
	return c.readEach(ctx, r, k, missing)
}

// failAll sets err as the result of every object of the kind. It returns err if the whole cluster
// failed.
func (k *kind) failAll(err error) error {
	seen, err := observeError(err)
	if err != nil {
		return err
	}
	for at := range k.observed {
		k.observed[at] = seen
	}
	return nil
}

// observeError converts an error of a single request to the result of the object. It returns any
// other error unchanged.
func observeError(err error) (v1alpha1.Observed, error) {
	var noKind *noKindError
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &noKind):
		return v1alpha1.Observed{Reason: v1alpha1.ReasonNoKind, Message: noKind.message}, nil
	case hasCode(err, http.StatusNotFound):
		return v1alpha1.Observed{}, nil
	case hasCode(err, http.StatusForbidden):
		return v1alpha1.Observed{Reason: v1alpha1.ReasonForbidden, Message: err.Error()}, nil
	case errors.As(err, &status):
		return v1alpha1.Observed{Reason: v1alpha1.ReasonError, Message: err.Error()}, nil
	default:
		return v1alpha1.Observed{}, err
	}
}

// listKind lists the objects of a kind that have quayside's label, and returns the requested ones
// by "namespace/name".
func (c *Client) listKind(ctx context.Context, r resource, k *kind) (map[string]map[string]any, error) {
	namespace := k.refs[0].Namespace
	if slices.ContainsFunc(k.refs, func(ref v1alpha1.ObjectReference) bool { return ref.Namespace != namespace }) {
		namespace = ""
	}
	var out map[string]map[string]any
	err := retryExpired(func() error {
		out = map[string]map[string]any{}
		_, err := c.listPages(ctx, r, page{kind: k, namespace: namespace, labels: k8s.LabelPackage}, func(o map[string]any) {
			at := namespacedName(k8s.Text(o, "metadata", "namespace"), k8s.Text(o, "metadata", "name"))
			if _, asked := k.observed[at]; asked {
				out[at] = o
			}
		})
		return err
	})
	return out, err
}

// readEach gets objects one by one. After a few errors it skips the rest of the kind, so that it
// does not send a thousand requests to a slow API server.
func (c *Client) readEach(ctx context.Context, r resource, k *kind, refs []v1alpha1.ObjectReference) error {
	var mu sync.Mutex
	var failed error
	errorCount := 0
	c.runParallel(len(refs), func(i int) {
		mu.Lock()
		stop := failed != nil
		skip := errorCount > maxSingleReads
		mu.Unlock()
		if stop {
			return
		}
		var o map[string]any
		err := error(newStatusError(0, "not requested, because previous requests failed"))
		if !skip {
			o, err = c.object(ctx, r, k, refs[i])
		}
		mu.Lock()
		defer mu.Unlock()
		seen := v1alpha1.Observed{Object: o}
		if err != nil {
			var fatal error
			if seen, fatal = observeError(err); fatal != nil {
				failed = fatal
				return
			}
		}
		if seen.Reason == v1alpha1.ReasonError {
			errorCount++
		}
		k.observed[namespacedName(refs[i].Namespace, refs[i].Name)] = seen
	})
	return failed
}

// object gets one object, and checks that the response has the requested scope and name.
func (c *Client) object(ctx context.Context, r resource, k *kind, ref v1alpha1.ObjectReference) (map[string]any, error) {
	if r.namespaced != (ref.Namespace != "") {
		return nil, newStatusError(0, fmt.Sprintf("the cluster serves %s with another scope", ref.Kind))
	}
	o, err := c.get(ctx, r, k, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if name := k8s.Text(o, "metadata", "name"); name != ref.Name {
		return nil, newStatusError(0, fmt.Sprintf("the server returned another object, %q", sanitize.TruncateLine(name, maxMessageBytes)))
	}
	return k.trim(o), nil
}
