package look

import (
	"context"
	"slices"
	"time"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/v1alpha1"
)

// What is looked at of the custom resources of one kind, and how many are named.
const (
	mostCustom  = 100
	namedCustom = 10
)

// CustomKind is one of an operator's own kinds, and what there is of it.
type CustomKind struct {
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
func (l *looker) custom(ctx context.Context, out *Seen) error {
	got := out.objects
	var lists []cluster.ListOptions
	of := map[int][]*Operator{} // by place in lists
	for _, in := range l.want.Installations {
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
			of[i] = append(of[i], out.Operators[in.Namespace+"/"+in.Spec.Package])
		}
	}
	found, err := l.c.Lists(ctx, lists)
	if err != nil {
		return err
	}
	now := time.Now()
	for i, f := range found {
		k := CustomKind{APIVersion: lists[i].APIVersion, Kind: lists[i].Kind, Message: f.Message, Count: len(f.Objects), AtLeast: f.More > 0}
		k.Resources, k.NotReady = judged(f.Objects, now)
		for _, op := range of[i] {
			op.Custom = append(op.Custom, k)
		}
	}
	return nil
}

// servedBy returns how to list what a definition defines: in the version that
// is stored, else in the first that is served.
func servedBy(definition map[string]any) (cluster.ListOptions, bool) {
	d := kinds.Define(definition)
	opt := cluster.ListOptions{Most: mostCustom, Kind: d.Kind}
	for _, v := range d.Versions {
		if v.Served && (opt.APIVersion == "" || v.Storage) {
			opt.APIVersion = d.Group + "/" + v.Name
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
		r := v1alpha1.ObjectHealth{
			APIVersion: kobj.Text(o, "apiVersion"), Kind: kobj.Text(o, "kind"),
			Namespace: kobj.Text(o, "metadata", "namespace"), Name: kobj.Text(o, "metadata", "name"),
			Health: h.Status, Message: h.Message,
		}
		if h.Status == v1alpha1.Current {
			good = append(good, r)
		} else {
			bad = append(bad, r)
		}
	}
	all := append(bad, good...)
	return all[:min(len(all), namedCustom)], len(bad)
}
