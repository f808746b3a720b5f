package cli

import (
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/v1alpha1"
)

// What is looked at of the custom resources of one kind, and how many are named.
const (
	mostCustom  = 100
	namedCustom = 10
)

// customKind is one of an operator's own kinds, and what there is of it.
type customKind struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"`
	Count      int                     `json:"count"`
	AtLeast    bool                    `json:"atLeast,omitempty"` // there are more than were looked at
	NotReady   int                     `json:"notReady"`
	Resources  []v1alpha1.ObjectHealth `json:"resources"`         // the first of them, those that are not ready foremost
	Message    string                  `json:"message,omitempty"` // why they could not be listed
}

// custom counts the custom resources of the kinds that the operators provide. A
// kind of several operators is listed once.
func (l *looker) custom(ctx context.Context, out *seen) error {
	got := out.objects
	var lists []live.ListOptions
	of := map[int][]*seenOperator{} // by place in lists
	for _, in := range l.want.installations {
		own := got[:len(in.Spec.Objects)]
		got = got[len(in.Spec.Objects):]
		for _, o := range own {
			if o.Ref.Kind != "CustomResourceDefinition" || o.Ref.Version == "" || o.Object == nil {
				continue // absent, or another operator provides it
			}
			opt, ok := servedBy(o.Object)
			if !ok {
				continue
			}
			i := slices.Index(lists, opt)
			if i < 0 {
				i = len(lists)
				lists = append(lists, opt)
			}
			of[i] = append(of[i], out.operators[in.Namespace+"/"+in.Spec.Package])
		}
	}
	found, err := l.c.Lists(ctx, lists)
	if err != nil {
		return err
	}
	now := time.Now()
	for i, f := range found {
		k := customKind{APIVersion: lists[i].APIVersion, Kind: lists[i].Kind, Message: f.Message, Count: len(f.Objects), AtLeast: f.More > 0}
		k.Resources, k.NotReady = judged(f.Objects, now)
		for _, op := range of[i] {
			op.custom = append(op.custom, k)
		}
	}
	return nil
}

// servedBy returns how to list what a definition defines: in the version that
// is stored, else in the first that is served.
func servedBy(definition map[string]any) (live.ListOptions, bool) {
	spec, _ := definition["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	opt := live.ListOptions{Most: mostCustom}
	opt.Kind, _ = names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		if v["served"] == true && (opt.APIVersion == "" || v["storage"] == true) {
			opt.APIVersion = group + "/" + name
		}
	}
	return opt, opt.Kind != "" && opt.APIVersion != ""
}

// judged returns the first few objects, those that are not ready foremost, and
// how many are not.
func judged(objects []map[string]any, now time.Time) ([]v1alpha1.ObjectHealth, int) {
	bad, good := []v1alpha1.ObjectHealth{}, []v1alpha1.ObjectHealth{}
	for _, o := range objects {
		h := report.Compute(o, now)
		meta, _ := o["metadata"].(map[string]any)
		r := v1alpha1.ObjectHealth{Health: h.Status, Message: h.Message}
		r.APIVersion, _ = o["apiVersion"].(string)
		r.Kind, _ = o["kind"].(string)
		r.Namespace, _ = meta["namespace"].(string)
		r.Name, _ = meta["name"].(string)
		if h.Status == v1alpha1.Current {
			good = append(good, r)
		} else {
			bad = append(bad, r)
		}
	}
	all := append(bad, good...)
	return all[:min(len(all), namedCustom)], len(bad)
}
