package render

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/admit"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// refused warns of custom resources that the tree holds and that its own CRDs
// do not admit, and notes why: a sync would fail at them. Few bundles ship any, and
// only theirs are opened.
func (t *tree) refused() {
	refused := map[kobj.Key]string{}
	definitions := map[[2]string]Object{} // by group and kind
	for _, r := range t.objects {
		if kobj.IsCRD(r.Object) {
			crd := kinds.Define(r.Object)
			definitions[[2]string{crd.Group, crd.Kind}] = r.Object
		}
	}
	kinds := map[string]*admit.Kind{}
	budget := admit.NewBudget()
	for _, in := range t.installs {
		for _, o := range in.objects {
			crd, ok := definitions[[2]string{o.Group(), o.Kind()}]
			if !ok || o.Is(conditionGroup, "OperatorCondition") {
				continue
			}
			kind, opened := kinds[crd.Name()]
			if !opened {
				kind, _ = admit.Open(crd, budget) // what is wrong with a CRD is said by its bundle's validation
				kinds[crd.Name()] = kind
			}
			if why := refusal(kind, o); why != "" {
				refused[o.Key()] = why
				t.warn(in.at(place(in.b, o)), in.pin.Key(), "custom-resource-refused", "%s: the cluster will refuse %s, for its own CustomResourceDefinition does: %s", in.name(), o.Key(), why)
			}
		}
	}
	for i, r := range t.objects {
		t.objects[i].Refused = refused[r.Object.Key()]
	}
}

// refusal returns why an object would not be admitted, "" where it would.
func refusal(kind *admit.Kind, o Object) string {
	if kind == nil {
		return ""
	}
	_, version, _ := strings.Cut(o.APIVersion(), "/")
	res, err := kind.Write(version, o)
	if errors.Is(err, admit.ErrNotServed) {
		return fmt.Sprintf("it does not serve version %q", version)
	}
	if err != nil {
		return ""
	}
	var why []string
	for _, f := range res.Rejected {
		why = append(why, strings.TrimPrefix(f.Field+": "+f.Message, ": "))
	}
	for _, field := range res.Dropped {
		why = append(why, field+": not a field that it declares")
	}
	return few(why)
}
