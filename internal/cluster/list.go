package cluster

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// pageSize is the maximum number of objects in a page of a list.
const pageSize = 250

// metadataOnly reports whether to fetch only the metadata of objects of the kind.
func (k *kind) metadataOnly() bool {
	return !k.content && k.apiVersion == "v1" && (k.name == "Secret" || k.name == "ConfigMap")
}

// trim removes unused fields from an object. It also sets the kind, which items of lists do not
// have.
func (k *kind) trim(o map[string]any) map[string]any {
	o["apiVersion"], o["kind"] = k.apiVersion, k.name
	if !k.managedFields {
		delete(k8s.Map(o, "metadata"), "managedFields")
	}
	delete(k8s.Map(o, "metadata", "annotations"), "kubectl.kubernetes.io/last-applied-configuration")
	if k.name == "CustomResourceDefinition" && !k.content {
		for _, v := range k8s.Items(o, "spec", "versions") {
			delete(v, "schema") // a schema is the largest part of a CRD
		}
	}
	return o
}

// page contains the options for list requests.
type page struct {
	kind      *kind
	namespace string // empty: all namespaces
	labels    string // label selector
	limit     int    // maximum number of objects; 0: all
}

// retryExpired calls list. If the list expired on the server between two pages, retryExpired calls list a
// second time.
func retryExpired(list func() error) error {
	err := list()
	if hasCode(err, http.StatusGone) {
		return list()
	}
	return err
}

// listPages lists objects in pages, and calls keep with each object. If it stops at p.limit, it returns a
// lower bound for the number of objects that it did not list.
func (c *Client) listPages(ctx context.Context, r resource, p page, keep func(map[string]any)) (int64, error) {
	opts := metav1.ListOptions{LabelSelector: p.labels}
	for read := 0; ; {
		opts.Limit = pageSize
		if p.limit > 0 {
			opts.Limit = int64(min(pageSize, p.limit-read))
		}
		list, err := c.listPage(ctx, r, p, opts)
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			keep(p.kind.trim(list.Items[i].Object))
		}
		read += len(list.Items)
		switch next := list.GetContinue(); {
		case next == "":
			return 0, nil
		case p.limit > 0 && read >= p.limit:
			if more := list.GetRemainingItemCount(); more != nil {
				return max(1, *more), nil
			}
			return 1, nil
		case next == opts.Continue, len(list.Items) == 0:
			return 0, newStatusError(0, "the server returned an endless list")
		default:
			opts.Continue = next
		}
	}
}

// listPage lists the objects of one page.
func (c *Client) listPage(ctx context.Context, r resource, p page, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if !p.kind.metadataOnly() {
		list, err := c.objects.Resource(r.GroupVersionResource).Namespace(r.requestNamespace(p.namespace)).List(ctx, opts)
		return list, c.convertError(ctx, err)
	}
	found, err := c.metadata.Resource(r.GroupVersionResource).Namespace(r.requestNamespace(p.namespace)).List(ctx, opts)
	if err != nil {
		return nil, c.convertError(ctx, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	list := &unstructured.UnstructuredList{}
	list.SetUnstructuredContent(fields)
	return list, c.convertError(ctx, err)
}

// get fetches one object.
func (c *Client) get(ctx context.Context, r resource, k *kind, namespace, name string) (map[string]any, error) {
	if !k.metadataOnly() {
		o, err := c.objects.Resource(r.GroupVersionResource).Namespace(r.requestNamespace(namespace)).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, c.convertError(ctx, err)
		}
		return o.Object, nil
	}
	object, err := c.metadata.Resource(r.GroupVersionResource).Namespace(r.requestNamespace(namespace)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.convertError(ctx, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return fields, c.convertError(ctx, err)
}

// ListResult is the result of listing a kind.
type ListResult struct {
	Objects []map[string]any // in the order of the server
	More    int64            // number of objects beyond Limit, at least
	Reason  string           // a reason constant of v1alpha1, if the list failed; otherwise empty
	Message string           // explains Reason
}

// ListOptions are the options of [Client.List].
type ListOptions struct {
	APIVersion, Kind string
	Namespace        string // empty: all namespaces
	Labels           string // label selector, such as "app=etcd"
	Limit            int    // maximum number of objects; 0: all
	WithContent      bool   // include the content of Secrets and ConfigMaps and the schemas of CRDs
	ManagedFields    bool   // include metadata.managedFields
}

// List lists objects of one kind. It returns the same errors as [Client.Read].
func (c *Client) List(ctx context.Context, opt ListOptions) (ListResult, error) {
	k := &kind{apiVersion: opt.APIVersion, name: opt.Kind, content: opt.WithContent, managedFields: opt.ManagedFields}
	var found ListResult
	r, err := c.resource(ctx, opt.APIVersion, opt.Kind)
	if err == nil {
		err = retryExpired(func() (err error) {
			found.Objects = nil
			found.More, err = c.listPages(ctx, r, page{k, opt.Namespace, opt.Labels, opt.Limit}, func(o map[string]any) {
				found.Objects = append(found.Objects, o)
			})
			return err
		})
	}
	if err == nil {
		return found, nil
	}
	seen, err := observeError(err)
	if seen.Reason == "" { // the API server serves the kind, but returns 404 for its list
		seen.Reason, seen.Message = v1alpha1.ReasonNoKind, "the cluster does not list "+opt.Kind
	}
	return ListResult{Reason: seen.Reason, Message: seen.Message}, err
}

// ListAll lists several kinds concurrently. The results are in the order of opts.
func (c *Client) ListAll(ctx context.Context, opts []ListOptions) ([]ListResult, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := make([]ListResult, len(opts))
	c.runParallel(len(opts), func(i int) {
		found, err := c.List(ctx, opts[i])
		if err != nil {
			stop(err)
		}
		out[i] = found
	})
	return out, context.Cause(ctx)
}
