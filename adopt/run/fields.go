package run

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/kobj"
)

// takenOver reports whether OLM manages no field of an object any more. Definitions
// and APIServices are left to it: what trusts their servers is OLM's field.
func takenOver(a *action, live kobj.Object) (bool, error) {
	if kobj.IsCRD(live) || live.Is("apiregistration.k8s.io", "APIService") {
		return false, a.changedf("is not to be taken over: the certificate that it trusts would go")
	}
	if err := a.mine(live); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(kobj.Items(live, "metadata", "managedFields"), plan.ByOLM), nil
}

// takeOver gives the fields that OLM manages to the plan's manager, as if that had
// applied them: the next apply then removes those that the tree does not have. The
// object itself stays as it is.
func takeOver(ctx context.Context, a *action, live kobj.Object) (kobj.Object, error) {
	return a.Cluster.Patch(ctx, a.Object, cluster.Patch{JSON: []cluster.Operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: kobj.Text(live, "metadata", "resourceVersion")},
		{Op: "replace", Path: "/metadata/managedFields", Value: handedOver(kobj.List(live, "metadata", "managedFields"), a.Plan.Manager, live.APIVersion())},
	}}, a.DryRun)
}

// handedOver returns managedFields in which what OLM has is the manager's.
func handedOver(entries []any, manager, apiVersion string) []any {
	var out []any
	fields := map[string]any{}
	newest := ""
	for _, v := range entries {
		e, _ := v.(map[string]any)
		own := kobj.Text(e, "manager") == manager && kobj.Text(e, "operation") == "Apply" && kobj.Text(e, "subresource") == ""
		if !own && !plan.ByOLM(e) {
			out = append(out, v)
			continue
		}
		fields = union(fields, kobj.Map(e, "fieldsV1"))
		newest = max(newest, kobj.Text(e, "time"))
	}
	entry := map[string]any{"manager": manager, "operation": "Apply", "apiVersion": apiVersion, "fieldsType": "FieldsV1", "fieldsV1": fields}
	if newest != "" {
		entry["time"] = newest
	}
	return append(out, entry)
}

// union returns the fields of two sets in the form of managedFields, where a set is
// a mapping of what lies below each field.
func union(a, b map[string]any) map[string]any {
	out := kobj.Copy(a)
	for k, v := range b {
		below, _ := v.(map[string]any)
		have, _ := out[k].(map[string]any)
		out[k] = union(have, below)
	}
	if out == nil {
		return map[string]any{}
	}
	return out
}

// escaped returns a key as a JSON pointer has it.
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
