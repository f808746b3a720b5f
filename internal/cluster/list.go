package cluster

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// pageSize is how many objects one page of a list has at most.
const pageSize = 250

// secretive reports whether only the metadata of a kind is fetched.
func (k *kind) secretive() bool {
	return !k.whole && k.apiVersion == "v1" && (k.name == "Secret" || k.name == "ConfigMap")
}

// dressed returns the object without what nobody looks at, and with its kind,
// which lists leave out.
func (k *kind) dressed(o map[string]any) map[string]any {
	o["apiVersion"], o["kind"] = k.apiVersion, k.name
	if !k.managed {
		delete(kobj.Map(o, "metadata"), "managedFields")
	}
	delete(kobj.Map(o, "metadata", "annotations"), "kubectl.kubernetes.io/last-applied-configuration")
	if k.name == "CustomResourceDefinition" && !k.whole {
		for _, v := range kobj.Items(o, "spec", "versions") {
			delete(v, "schema") // by far the most of it
		}
	}
	return o
}

// page says what to list.
type page struct {
	of        *kind
	namespace string // empty: everywhere
	labels    string // selector
	most      int    // objects; 0: all
}

// pages lists, in pages, and calls keep with each object. It returns how many
// more there are than p permits to be read. A list that changes under its
// reader is begun anew once; keep then gets the same objects again.
func (c *Client) pages(ctx context.Context, r resource, p page, keep func(map[string]any)) (more int64, err error) {
	for try := 0; ; try++ {
		more, err = c.allPages(ctx, r, p, keep)
		if try > 0 || !hasCode(err, http.StatusGone) {
			return more, err
		}
	}
}

func (c *Client) allPages(ctx context.Context, r resource, p page, keep func(map[string]any)) (int64, error) {
	opts := metav1.ListOptions{LabelSelector: p.labels}
	for read := 0; ; {
		opts.Limit = pageSize
		if p.most > 0 {
			opts.Limit = int64(min(pageSize, p.most-read))
		}
		list, err := c.page(ctx, r, p, opts)
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			keep(p.of.dressed(list.Items[i].Object))
		}
		read += len(list.Items)
		switch next := list.GetContinue(); {
		case next == "":
			return 0, nil
		case p.most > 0 && read >= p.most:
			if more := list.GetRemainingItemCount(); more != nil {
				return max(1, *more), nil
			}
			return 1, nil
		case next == opts.Continue, len(list.Items) == 0:
			return 0, fault(0, "the list has no end")
		default:
			opts.Continue = next
		}
	}
}

// page lists the objects of one page.
func (c *Client) page(ctx context.Context, r resource, p page, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if !p.of.secretive() {
		list, err := c.objects.Resource(r.GroupVersionResource).Namespace(r.within(p.namespace)).List(ctx, opts)
		return list, c.failure(ctx, err)
	}
	heads, err := c.heads.Resource(r.GroupVersionResource).Namespace(r.within(p.namespace)).List(ctx, opts)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(heads)
	list := &unstructured.UnstructuredList{}
	list.SetUnstructuredContent(fields)
	return list, c.failure(ctx, err)
}

// get fetches one object, of which nothing is left out but what is not fetched.
func (c *Client) get(ctx context.Context, r resource, k *kind, namespace, name string) (map[string]any, error) {
	if !k.secretive() {
		o, err := c.objects.Resource(r.GroupVersionResource).Namespace(r.within(namespace)).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, c.failure(ctx, err)
		}
		return o.Object, nil
	}
	head, err := c.heads.Resource(r.GroupVersionResource).Namespace(r.within(namespace)).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(head)
	return fields, c.failure(ctx, err)
}

// Found is what a list gave.
type Found struct {
	Objects []map[string]any // in the server's order
	More    int64            // at least so many are left out
	Reason  string           // one of v1alpha1's reasons, where it could not be listed
	Message string           // to go with Reason
}

// ListOptions say what to list.
type ListOptions struct {
	APIVersion, Kind string
	Namespace        string // empty: everywhere
	Labels           string // selector: "app=etcd"
	Most             int    // objects; 0: all
	Whole            bool   // with what Secrets and ConfigMaps hold, and the schemas of definitions
	ManagedFields    bool   // with who manages which field
}

// List lists objects of one kind. The error is as that of Read.
func (c *Client) List(ctx context.Context, opt ListOptions) (Found, error) {
	k := &kind{apiVersion: opt.APIVersion, name: opt.Kind, whole: opt.Whole, managed: opt.ManagedFields}
	var found Found
	r, err := c.resource(ctx, opt.APIVersion, opt.Kind)
	if err == nil {
		found.More, err = c.pages(ctx, r, page{k, opt.Namespace, opt.Labels, opt.Most}, func(o map[string]any) {
			found.Objects = append(found.Objects, o)
		})
	}
	if err == nil {
		return found, nil
	}
	seen, err := observed(err)
	if seen.Reason == "" { // the kind is known, and yet there is no such list
		seen.Reason, seen.Message = v1alpha1.ReasonNoKind, "the cluster does not list "+opt.Kind
	}
	return Found{Reason: seen.Reason, Message: seen.Message}, err
}

// Lists lists several kinds and returns what was found of each, in the order of
// opts.
func (c *Client) Lists(ctx context.Context, opts []ListOptions) ([]Found, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := make([]Found, len(opts))
	c.each(len(opts), func(i int) {
		found, err := c.List(ctx, opts[i])
		if err != nil {
			stop(err)
		}
		out[i] = found
	})
	return out, context.Cause(ctx)
}
