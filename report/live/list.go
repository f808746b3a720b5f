package live

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// object is one object as it was read. Whole numbers are int64, as everything
// that works on objects in this form expects.
type object struct{ fields map[string]any }

// UnmarshalJSON reads a mapping.
func (o *object) UnmarshalJSON(data []byte) error {
	return utiljson.Unmarshal(data, &o.fields)
}

// secretive reports whether only the metadata of a kind is fetched.
func (k *kind) secretive() bool {
	return !k.whole && k.apiVersion == "v1" && (k.name == "Secret" || k.name == "ConfigMap")
}

// accept returns the form in which objects of the kind are asked for; suffix is
// "List" for a list of them.
func (k *kind) accept(suffix string) string {
	if k.secretive() {
		return plainJSON + ";as=PartialObjectMetadata" + suffix + ";g=meta.k8s.io;v=v1"
	}
	return plainJSON
}

// dressed returns the object without what nobody looks at, and with its kind,
// which lists leave out.
func (k *kind) dressed(o map[string]any) map[string]any {
	if o == nil {
		o = map[string]any{}
	}
	o["apiVersion"], o["kind"] = k.apiVersion, k.name
	if k.secretive() {
		delete(o, "data")
		delete(o, "stringData")
		delete(o, "binaryData")
	}
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
func (c *Cluster) pages(ctx context.Context, r resource, p page, keep func(map[string]any)) (more int64, err error) {
	for try := 0; ; try++ {
		more, err = c.allPages(ctx, r, p, keep)
		if try > 0 || !refused(err, http.StatusGone) {
			return more, err
		}
	}
}

func (c *Cluster) allPages(ctx context.Context, r resource, p page, keep func(map[string]any)) (int64, error) {
	query := url.Values{}
	if p.labels != "" {
		query.Set("labelSelector", p.labels)
	}
	for read := 0; ; {
		limit := pageSize
		if p.most > 0 {
			limit = min(limit, p.most-read)
		}
		query.Set("limit", strconv.Itoa(limit))
		var list struct {
			Metadata struct {
				Continue           string `json:"continue"`
				RemainingItemCount int64  `json:"remainingItemCount"`
			} `json:"metadata"`
			Items []json.RawMessage `json:"items"`
		}
		if err := c.get(ctx, r.at(p.namespace), query, p.of.accept("List"), longPage, &list); err != nil {
			return 0, err
		}
		for _, item := range list.Items {
			var o object
			if err := o.UnmarshalJSON(item); err != nil {
				return 0, &answer{message: "an item of the list is no object: " + inert.Clip(err.Error(), wordy)}
			}
			keep(p.of.dressed(o.fields))
		}
		read += len(list.Items)
		switch next := list.Metadata.Continue; {
		case next == "":
			return 0, nil
		case p.most > 0 && read >= p.most:
			return max(1, list.Metadata.RemainingItemCount), nil
		case next == query.Get("continue"), len(list.Items) == 0:
			return 0, &answer{message: "the list has no end"}
		default:
			query.Set("continue", next)
		}
	}
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
func (c *Cluster) List(ctx context.Context, opt ListOptions) (Found, error) {
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
func (c *Cluster) Lists(ctx context.Context, opts []ListOptions) ([]Found, error) {
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
