package run

import (
	"context"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// isTransferred reports whether OLM no longer manages any field of an object. It returns an error for
// CRDs and APIServices, whose CA certificate is one of OLM's fields.
func isTransferred(a *action, live k8s.Object) (bool, error) {
	if k8s.IsCRD(live) || live.Is("apiregistration.k8s.io", "APIService") {
		return false, a.changedf("must not change owner: its CA certificate would be lost")
	}
	return isMetadataDone(a, live)
}

// transferOwnership transfers the ownership of OLM's fields to the plan's field manager, as if that
// manager had applied them. The next apply then removes the fields that are not in the tree. Only
// managedFields is changed.
func transferOwnership(ctx context.Context, a *action, live k8s.Object) (k8s.Object, error) {
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: []cluster.Operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: k8s.Text(live, "metadata", "resourceVersion")},
		{Op: "replace", Path: "/metadata/managedFields", Value: transferFields(k8s.List(live, "metadata", "managedFields"), a.Plan.Manager, live.APIVersion())},
	}}, a.DryRun)
}

// transferFields returns managedFields with OLM's fields transferred to the manager.
func transferFields(entries []any, manager, apiVersion string) []any {
	var out []any
	fields := map[string]any{}
	newest := ""
	for _, v := range entries {
		e, _ := v.(map[string]any)
		own := k8s.Text(e, "manager") == manager && k8s.Text(e, "operation") == "Apply" && k8s.Text(e, "subresource") == ""
		if !own && !plan.IsWrittenByOLM(e) {
			out = append(out, v)
			continue
		}
		fields = mergeFieldSets(fields, k8s.Map(e, "fieldsV1"))
		newest = max(newest, k8s.Text(e, "time"))
	}
	entry := map[string]any{"manager": manager, "operation": "Apply", "apiVersion": apiVersion, "fieldsType": "FieldsV1", "fieldsV1": fields}
	if newest != "" {
		entry["time"] = newest
	}
	return append(out, entry)
}

// mergeFieldSets merges two field sets in the format fieldsV1, which maps each field to the set of
// fields below it.
func mergeFieldSets(a, b map[string]any) map[string]any {
	out := k8s.Copy(a)
	for k, v := range b {
		below, _ := v.(map[string]any)
		have, _ := out[k].(map[string]any)
		out[k] = mergeFieldSets(have, below)
	}
	return out
}
