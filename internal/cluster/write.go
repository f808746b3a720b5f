package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Writer reads and changes single objects. A change that may have happened is not
// sent again: the caller looks at the object first. It is for use by several
// goroutines at once.
type Writer struct {
	client  *Client
	manager string
}

// NewWriter returns a writer for the cluster of c. manager is the field manager of
// what is not applied.
func NewWriter(c *Client, manager string) *Writer { return &Writer{c, manager} }

// RequestError is a request about one object that the API server did not fulfil.
type RequestError struct {
	Verb   string // "apply"
	Object kobj.Ref
	Err    *apierrors.StatusError
}

// Error names the object and, where others manage fields of it, who does which.
func (e *RequestError) Error() string {
	if fields := e.Fields(); len(fields) > 0 {
		return fmt.Sprintf("%s %s: others manage fields of it: %s", e.Verb, e.Object, strings.Join(fields, ", "))
	}
	return fmt.Sprintf("%s %s: %v", e.Verb, e.Object, e.Err)
}

// Unwrap returns what the server answered.
func (e *RequestError) Unwrap() error { return e.Err }

// Fields returns which fields others manage, where that is why the request was
// refused: "kubectl has .spec.replicas".
func (e *RequestError) Fields() []string {
	var out []string
	if details := e.Err.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				_, manager, _ := strings.Cut(cause.Message, `conflict with "`)
				manager, _, _ = strings.Cut(manager, `"`)
				out = append(out, inert.Clip(manager+" has "+cause.Field, wordy))
			}
		}
	}
	return out
}

// Passes reports whether the same request may succeed a little later: the server was
// busy or failed, or its answer was lost. It may have done what it was asked.
func (e *RequestError) Passes() bool {
	code := e.Err.ErrStatus.Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// refused returns err as the *RequestError that it is, if it concerns this request
// alone.
func refused(verb string, ref kobj.Ref, err error) error {
	var status *apierrors.StatusError
	var noKind *noKindError
	var away *UnreachableError
	switch {
	case errors.As(err, &noKind):
		status = fault(http.StatusNotFound, noKind.message)
	case errors.As(err, &away) && (utilnet.IsConnectionReset(away.Err) || utilnet.IsProbableEOF(away.Err)):
		status = fault(http.StatusGatewayTimeout, "the connection ended before the answer")
	case !errors.As(err, &status):
		return err
	}
	return &RequestError{verb, ref, status}
}

// resource returns how a kind is served, which may have begun since the server was
// asked.
func (w *Writer) resource(ctx context.Context, ref kobj.Ref) (resource, error) {
	r, err := w.client.resource(ctx, ref.APIVersion, ref.Kind)
	if err != nil && ctx.Err() == nil {
		w.client.Forget()
		r, err = w.client.resource(ctx, ref.APIVersion, ref.Kind)
	}
	return r, err
}

// send has do send a request about one object.
func (w *Writer) send(ctx context.Context, verb string, ref kobj.Ref, do func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (kobj.Object, error) {
	r, err := w.resource(ctx, ref)
	if err != nil {
		return nil, refused(verb, ref, err)
	}
	o, err := do(w.client.objects.Resource(r.GroupVersionResource).Namespace(r.within(ref.Namespace)))
	if err != nil {
		return nil, refused(verb, ref, w.client.failure(ctx, err))
	}
	return o.Object, nil
}

// Get returns an object, nil where there is none or its kind is not served. Of a
// Secret it returns the head.
func (w *Writer) Get(ctx context.Context, ref kobj.Ref) (kobj.Object, error) {
	r, err := w.resource(ctx, ref)
	var o kobj.Object
	if err == nil {
		o, err = w.client.get(ctx, r, kindOf(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	}
	err = refused("read", ref, err)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o["apiVersion"], o["kind"] = ref.APIVersion, ref.Kind
	return o, nil
}

// kindOf returns a kind of which all but the content of Secrets is read.
func kindOf(apiVersion, name string) *kind {
	return &kind{apiVersion: apiVersion, name: name, whole: !(apiVersion == "v1" && name == "Secret")}
}

// List returns the objects of a kind with these labels, in all namespaces where
// namespace is empty; none where the kind is not served. Of Secrets it returns the
// heads.
func (w *Writer) List(ctx context.Context, apiVersion, kind, namespace, labels string) ([]kobj.Object, error) {
	found, err := w.client.List(ctx, ListOptions{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Labels: labels, Whole: kindOf(apiVersion, kind).whole})
	switch {
	case err != nil:
		return nil, err
	case found.Reason == v1alpha1.ReasonNoKind:
		return nil, nil
	case found.Reason != "":
		code := 0
		if found.Reason == v1alpha1.ReasonForbidden {
			code = http.StatusForbidden
		}
		return nil, &RequestError{"list", kobj.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace}, fault(code, found.Message)}
	}
	out := make([]kobj.Object, len(found.Objects))
	for i, o := range found.Objects {
		out[i] = o
	}
	return out, nil
}

// Apply applies an object server-side, and returns what is there then. Without force
// another manager's field is a conflict.
func (w *Writer) Apply(ctx context.Context, o kobj.Object, manager string, force, dryRun bool) (kobj.Object, error) {
	opts := metav1.ApplyOptions{FieldManager: manager, Force: force, DryRun: trial(dryRun)}
	return w.send(ctx, "apply", kobj.RefTo(o), func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Apply(ctx, o.Name(), &unstructured.Unstructured{Object: o}, opts)
	})
}

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

// Encode returns the patch as it is sent.
func (p Patch) Encode() (types.PatchType, []byte, error) {
	if p.JSON != nil {
		data, err := json.Marshal(p.JSON)
		return types.JSONPatchType, data, err
	}
	data, err := json.Marshal(p.Merge)
	return types.MergePatchType, data, err
}

// Patch changes an object by a JSON patch or a merge patch.
func (w *Writer) Patch(ctx context.Context, ref kobj.Ref, patch Patch, dryRun bool) (kobj.Object, error) {
	form, data, err := patch.Encode()
	if err != nil {
		return nil, err
	}
	opts := metav1.PatchOptions{FieldManager: w.manager, DryRun: trial(dryRun)}
	return w.send(ctx, "patch", ref, func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Patch(ctx, ref.Name, form, data, opts)
	})
}

// Deletion says what an object must still be, and what becomes of what it owns.
type Deletion struct {
	UID             string
	ResourceVersion string // empty: whatever it is
	Orphan          bool   // what it owns stays; else the garbage collector takes it
}

// Delete deletes an object that still is what opt says. One that is not there is no
// error.
func (w *Writer) Delete(ctx context.Context, ref kobj.Ref, opt Deletion, dryRun bool) error {
	if opt.UID == "" {
		return fmt.Errorf("delete %s: which one is not said (no UID)", ref)
	}
	opts := metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(types.UID(opt.UID))},
		PropagationPolicy: new(metav1.DeletePropagationBackground), DryRun: trial(dryRun),
	}
	if opt.ResourceVersion != "" {
		opts.Preconditions.ResourceVersion = &opt.ResourceVersion
	}
	if opt.Orphan {
		opts.PropagationPolicy = new(metav1.DeletePropagationOrphan)
	}
	_, err := w.send(ctx, "delete", ref, func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return &unstructured.Unstructured{}, objects.Delete(ctx, ref.Name, opts)
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Create creates an object, or asks for a review.
func (w *Writer) Create(ctx context.Context, o kobj.Object, dryRun bool) (kobj.Object, error) {
	opts := metav1.CreateOptions{FieldManager: w.manager, DryRun: trial(dryRun)}
	return w.send(ctx, "create", kobj.RefTo(o), func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Create(ctx, &unstructured.Unstructured{Object: o}, opts)
	})
}

// trial makes a request one that stores nothing, where that is wanted.
func trial(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
