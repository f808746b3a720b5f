package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// few is up to how many objects of a kind are fetched one by one.
const few = 3

// kind is one kind of objects to read, and what is known of them so far.
type kind struct {
	apiVersion, name string
	whole            bool // with contents
	managed          bool // with managedFields
	refs             []v1alpha1.ObjectReference
	got              map[string]v1alpha1.Observed // by namespace/name
}

func place(namespace, name string) string { return namespace + "/" + name }

// Read reads the objects of refs and returns what was found of each, in the
// order of refs. The error is an *UnreachableError or that of ctx; whatever concerns
// single objects is in what was found.
func (c *Client) Read(ctx context.Context, refs []v1alpha1.ObjectReference) ([]v1alpha1.Observed, error) {
	kinds, of := sortedOut(refs)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.each(len(kinds), func(i int) {
		if err := c.readKind(ctx, kinds[i]); err != nil {
			stop(err)
		}
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out := make([]v1alpha1.Observed, len(refs))
	for i, ref := range refs {
		out[i] = of[i].got[place(ref.Namespace, ref.Name)]
		out[i].Ref = ref
	}
	return out, nil
}

// sortedOut returns the kinds of refs, and for each ref its kind. An object that
// stands there twice is read once.
func sortedOut(refs []v1alpha1.ObjectReference) ([]*kind, []*kind) {
	var kinds []*kind
	byName := map[[2]string]*kind{}
	of := make([]*kind, len(refs))
	for i, ref := range refs {
		key := [2]string{ref.APIVersion, ref.Kind}
		k := byName[key]
		if k == nil {
			k = &kind{apiVersion: ref.APIVersion, name: ref.Kind, got: map[string]v1alpha1.Observed{}}
			byName[key] = k
			kinds = append(kinds, k)
		}
		of[i] = k
		at := place(ref.Namespace, ref.Name)
		if _, twice := k.got[at]; !twice {
			k.got[at] = v1alpha1.Observed{Ref: ref}
			k.refs = append(k.refs, ref)
		}
	}
	return kinds, of
}

// each calls do with 0 to n-1, several at once, and returns when all is done.
func (c *Client) each(n int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2*parallel)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}

// readKind fills in what is found of the objects of one kind.
func (c *Client) readKind(ctx context.Context, k *kind) error {
	r, err := c.resource(ctx, k.apiVersion, k.name)
	if err != nil {
		return k.all(err)
	}
	missing := k.refs
	if len(k.refs) > few {
		listed, err := c.listKind(ctx, r, k)
		switch {
		case hasCode(err, http.StatusRequestEntityTooLarge, http.StatusForbidden, http.StatusGone):
			// One by one they may be had.
		case err != nil:
			return k.all(err)
		}
		missing = slices.DeleteFunc(slices.Clone(k.refs), func(ref v1alpha1.ObjectReference) bool {
			at := place(ref.Namespace, ref.Name)
			o, ok := listed[at]
			if ok {
				k.got[at] = v1alpha1.Observed{Object: o}
			}
			return ok
		})
	}
	return c.readEach(ctx, r, k, missing)
}

// all says of every object of the kind that err stood in the way. It returns
// err where that concerns the cluster.
func (k *kind) all(err error) error {
	seen, err := observed(err)
	if err != nil {
		return err
	}
	for at := range k.got {
		k.got[at] = seen
	}
	return nil
}

// observed returns an error that concerns single objects as an observation of them.
// Any other is returned.
func observed(err error) (v1alpha1.Observed, error) {
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

// listKind lists what is quayside's of a kind and returns the objects that are
// asked for, by place.
func (c *Client) listKind(ctx context.Context, r resource, k *kind) (map[string]map[string]any, error) {
	namespace := k.refs[0].Namespace
	if slices.ContainsFunc(k.refs, func(ref v1alpha1.ObjectReference) bool { return ref.Namespace != namespace }) {
		namespace = ""
	}
	out := map[string]map[string]any{}
	_, err := c.pages(ctx, r, page{of: k, namespace: namespace, labels: kobj.LabelPackage}, func(o map[string]any) {
		at := place(kobj.Text(o, "metadata", "namespace"), kobj.Text(o, "metadata", "name"))
		if _, asked := k.got[at]; asked {
			out[at] = o
		}
	})
	return out, err
}

// readEach fetches objects one by one. A kind that was refused a few times is
// refused for all: an API server that takes its time is not asked a thousand
// times more.
func (c *Client) readEach(ctx context.Context, r resource, k *kind, refs []v1alpha1.ObjectReference) error {
	var mu sync.Mutex
	var failed error
	late := 0
	c.each(len(refs), func(i int) {
		mu.Lock()
		stop := failed != nil
		slow := late > few
		mu.Unlock()
		if stop {
			return
		}
		var o map[string]any
		err := error(fault(0, "not asked for: the answers to requests before it failed"))
		if !slow {
			o, err = c.object(ctx, r, k, refs[i])
		}
		mu.Lock()
		defer mu.Unlock()
		seen := v1alpha1.Observed{Object: o}
		if err != nil {
			var fatal error
			if seen, fatal = observed(err); fatal != nil {
				failed = fatal
				return
			}
		}
		if seen.Reason == v1alpha1.ReasonError {
			late++
		}
		k.got[place(refs[i].Namespace, refs[i].Name)] = seen
	})
	return failed
}

// object fetches one object.
func (c *Client) object(ctx context.Context, r resource, k *kind, ref v1alpha1.ObjectReference) (map[string]any, error) {
	if r.namespaced != (ref.Namespace != "") {
		return nil, fault(0, fmt.Sprintf("the cluster serves %s with another scope", ref.Kind))
	}
	o, err := c.get(ctx, r, k, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	if name := kobj.Text(o, "metadata", "name"); name != ref.Name {
		return nil, fault(0, fmt.Sprintf("the answer is about %q", inert.Clip(name, wordy)))
	}
	return k.dressed(o), nil
}
