package render

import (
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// warnRejected adds a warning for each custom resource that a CRD of the tree rejects, because the GitOps tool could
// not apply it. It stores the reason in the field Refused. It compiles only the CRDs of shipped custom resources.
func (t *tree) warnRejected() {
	reasons := map[k8s.Key]string{}
	definitions := map[[2]string]Object{} // CRDs by group and kind
	for _, r := range t.objects {
		if k8s.IsCRD(r.Object) {
			crd := k8s.ParseCRD(r.Object)
			definitions[[2]string{crd.Group, crd.Kind}] = r.Object
		}
	}
	kinds := map[string]*admit.Kind{}
	budget := admit.NewBudget()
	for _, in := range t.installs {
		for _, o := range in.objects {
			crd, ok := definitions[[2]string{o.Group(), o.Kind()}]
			if !ok || o.Is(k8s.OLMGroup, "OperatorCondition") {
				continue
			}
			kind, opened := kinds[crd.Name()]
			if !opened {
				// the validation of the bundle reports an invalid CRD
				kind, _ = admit.Open(crd, budget)
				kinds[crd.Name()] = kind
			}
			if refusals := kind.Refusals(o); len(refusals) > 0 {
				why := formatFirst(refusals)
				reasons[o.Key()] = why
				t.warn(in.bundlePos(objectPos(in.b, o)), in.pin.Key(), "custom-resource-refused", "%s: the API server will reject %s, because it is invalid according to its CustomResourceDefinition: %s", in.name(), o.Key(), why)
			}
		}
	}
	for i, r := range t.objects {
		t.objects[i].Refused = reasons[r.Object.Key()]
	}
}
