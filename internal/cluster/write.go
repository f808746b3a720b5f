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

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// Writer reads and changes single objects. It does not retry a failed change, because the server may have
// executed the change. Before a retry, the caller must read the object. A Writer is safe for concurrent use.
type Writer struct {
	client  *Client
	manager string
}

// NewWriter returns a Writer for the cluster of c. manager is the field manager of all changes except those
// by [Writer.Apply].
func NewWriter(c *Client, manager string) *Writer { return &Writer{c, manager} }

// RequestError is returned for a failed request about one object.
type RequestError struct {
	Verb   string // such as "apply"
	Object k8s.Ref
	Err    *apierrors.StatusError
}

// Error returns the message with the object and, for a conflict, the field managers.
func (e *RequestError) Error() string {
	if fields := e.Fields(); len(fields) > 0 {
		return fmt.Sprintf("%s %s: conflict with other field managers: %s", e.Verb, e.Object, strings.Join(fields, ", "))
	}
	return fmt.Sprintf("%s %s: %v", e.Verb, e.Object, e.Err)
}

// Unwrap returns the error of the server.
func (e *RequestError) Unwrap() error { return e.Err }

// Fields describes the conflicting fields, such as ".spec.replicas is managed by kubectl".
func (e *RequestError) Fields() []string {
	var out []string
	if details := e.Err.ErrStatus.Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == metav1.CauseTypeFieldManagerConflict {
				_, manager, _ := strings.Cut(cause.Message, `conflict with "`)
				manager, _, _ = strings.Cut(manager, `"`)
				out = append(out, sanitize.TruncateLine(cause.Field+" is managed by "+manager, maxMessageBytes))
			}
		}
	}
	return out
}

// IsRetryable reports whether the request may succeed if it is sent again, because the server was
// busy or failed, or the response was lost. The server may have executed the request.
func (e *RequestError) IsRetryable() bool {
	code := e.Err.ErrStatus.Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// newRequestError returns err as a *RequestError if it is an error of a single request. Otherwise
// it returns err.
func newRequestError(verb string, ref k8s.Ref, err error) error {
	var status *apierrors.StatusError
	var noKind *noKindError
	var unreachable *UnreachableError
	switch {
	case errors.As(err, &noKind):
		status = newStatusError(http.StatusNotFound, noKind.message)
	case errors.As(err, &unreachable) && (utilnet.IsConnectionReset(unreachable.Err) || utilnet.IsProbableEOF(unreachable.Err)):
		status = newStatusError(http.StatusGatewayTimeout, "the connection ended before the response")
	case !errors.As(err, &status):
		return err
	}
	return &RequestError{verb, ref, status}
}

// resource returns the API resource of a kind. If the server does not serve the kind, it tries
// again once with new discovery results, because the CRD may have been created meanwhile.
func (w *Writer) resource(ctx context.Context, ref k8s.Ref) (resource, error) {
	r, err := w.client.resource(ctx, ref.APIVersion, ref.Kind)
	if err != nil && ctx.Err() == nil {
		w.client.Forget()
		r, err = w.client.resource(ctx, ref.APIVersion, ref.Kind)
	}
	return r, err
}

// send calls do with the client for the kind of ref. It returns errors as newRequestError does.
func (w *Writer) send(ctx context.Context, verb string, ref k8s.Ref, do func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (k8s.Object, error) {
	r, err := w.resource(ctx, ref)
	if err != nil {
		return nil, newRequestError(verb, ref, err)
	}
	o, err := do(w.client.objects.Resource(r.GroupVersionResource).Namespace(r.requestNamespace(ref.Namespace)))
	if err != nil {
		return nil, newRequestError(verb, ref, w.client.convertError(ctx, err))
	}
	return o.Object, nil
}

// Get returns an object, or nil if it does not exist or the server does not serve its kind. For a
// Secret it returns only the metadata.
func (w *Writer) Get(ctx context.Context, ref k8s.Ref) (k8s.Object, error) {
	r, err := w.resource(ctx, ref)
	var o k8s.Object
	if err == nil {
		o, err = w.client.get(ctx, r, newKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	}
	err = newRequestError("read", ref, err)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o["apiVersion"], o["kind"] = ref.APIVersion, ref.Kind
	return o, nil
}

// newKind returns a kind to read. Of Secrets, only the metadata is read.
func newKind(apiVersion, name string) *kind {
	return &kind{apiVersion: apiVersion, name: name, content: !(apiVersion == "v1" && name == "Secret")}
}

// List returns the objects of a kind that match a label selector. An empty namespace means all
// namespaces. It returns nil if the server does not serve the kind. For Secrets it returns only the
// metadata.
func (w *Writer) List(ctx context.Context, apiVersion, kind, namespace, labels string) ([]k8s.Object, error) {
	return w.list(ctx, ListOptions{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Labels: labels})
}

// First is like List for all namespaces, but returns at most limit objects.
func (w *Writer) First(ctx context.Context, apiVersion, kind string, limit int) ([]k8s.Object, error) {
	return w.list(ctx, ListOptions{APIVersion: apiVersion, Kind: kind, Limit: limit})
}

func (w *Writer) list(ctx context.Context, opt ListOptions) ([]k8s.Object, error) {
	opt.WithContent = newKind(opt.APIVersion, opt.Kind).content
	found, err := w.client.List(ctx, opt)
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
		return nil, &RequestError{"list", k8s.Ref{APIVersion: opt.APIVersion, Kind: opt.Kind, Namespace: opt.Namespace}, newStatusError(code, found.Message)}
	}
	out := make([]k8s.Object, len(found.Objects))
	for i, o := range found.Objects {
		out[i] = o
	}
	return out, nil
}

// Apply applies an object server-side, and returns the result. Unless force is true, a change to a
// field of another manager is a conflict.
func (w *Writer) Apply(ctx context.Context, o k8s.Object, manager string, force, dryRun bool) (k8s.Object, error) {
	opts := metav1.ApplyOptions{FieldManager: manager, Force: force, DryRun: dryRunOption(dryRun)}
	return w.send(ctx, "apply", k8s.RefTo(o), func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Apply(ctx, o.Name(), &unstructured.Unstructured{Object: o}, opts)
	})
}

// Patch is a JSON patch or a merge patch. Exactly one of the fields is set.
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

// Encode returns the type and the body of the request.
func (p Patch) Encode() (types.PatchType, []byte, error) {
	if p.JSON != nil {
		data, err := json.Marshal(p.JSON)
		return types.JSONPatchType, data, err
	}
	data, err := json.Marshal(p.Merge)
	return types.MergePatchType, data, err
}

// Patch changes an object by a JSON patch or a merge patch.
func (w *Writer) Patch(ctx context.Context, ref k8s.Ref, patch Patch, dryRun bool) (k8s.Object, error) {
	patchType, data, err := patch.Encode()
	if err != nil {
		return nil, err
	}
	opts := metav1.PatchOptions{FieldManager: w.manager, DryRun: dryRunOption(dryRun)}
	return w.send(ctx, "patch", ref, func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Patch(ctx, ref.Name, patchType, data, opts)
	})
}

// DeleteOptions are the preconditions of a deletion, and its effect on dependent objects.
type DeleteOptions struct {
	UID             string
	ResourceVersion string // required resourceVersion; empty: any
	Orphan          bool   // keep dependent objects; otherwise the garbage collector deletes them
}

// Delete deletes an object if it matches the preconditions in opt. It returns no error if the
// object does not exist.
func (w *Writer) Delete(ctx context.Context, ref k8s.Ref, opt DeleteOptions, dryRun bool) error {
	if opt.UID == "" {
		return fmt.Errorf("delete %s: no UID given", ref)
	}
	opts := metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(types.UID(opt.UID))},
		PropagationPolicy: new(metav1.DeletePropagationBackground), DryRun: dryRunOption(dryRun),
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

// Create creates an object, or sends a review such as a SelfSubjectAccessReview. It returns the
// response.
func (w *Writer) Create(ctx context.Context, o k8s.Object, dryRun bool) (k8s.Object, error) {
	opts := metav1.CreateOptions{FieldManager: w.manager, DryRun: dryRunOption(dryRun)}
	return w.send(ctx, "create", k8s.RefTo(o), func(objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Create(ctx, &unstructured.Unstructured{Object: o}, opts)
	})
}

// dryRunOption returns the value of the request option dryRun.
func dryRunOption(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
