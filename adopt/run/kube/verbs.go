package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/run"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/live"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Get implements verify.Reader. A kind that is not served has no objects.
func (c *Cluster) Get(ctx context.Context, ref plan.Ref) (kobj.Object, error) {
	r := request{verb: "read", ref: ref, method: http.MethodGet, safe: true}
	if ref.APIVersion == "v1" && ref.Kind == "Secret" {
		r.header = map[string]string{"Accept": headOnly}
	}
	o, err := c.send(ctx, r)
	var refused *run.RefusedError
	if errors.As(err, &refused) && refused.Why == run.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o["apiVersion"], o["kind"] = ref.APIVersion, ref.Kind
	return o, nil
}

// List implements verify.Reader.
func (c *Cluster) List(ctx context.Context, apiVersion, kind, namespace, labels string) ([]kobj.Object, error) {
	whole := !(apiVersion == "v1" && kind == "Secret")
	found, err := c.live.List(ctx, live.ListOptions{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Labels: labels, Whole: whole})
	switch {
	case err != nil:
		return nil, err
	case found.Reason == v1alpha1.ReasonNoKind:
		return nil, nil
	case found.Reason != "":
		why := run.Refused
		if found.Reason == v1alpha1.ReasonForbidden {
			why = run.Forbidden
		}
		return nil, &run.RefusedError{Verb: "list", Object: plan.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace}, Why: why, Message: found.Message}
	}
	out := make([]kobj.Object, len(found.Objects))
	for i, o := range found.Objects {
		out[i] = o
	}
	return out, nil
}

// Allowed implements verify.Reader.
func (c *Cluster) Allowed(ctx context.Context, r verify.Review) (bool, error) {
	spec := map[string]any{"user": r.Account, "groups": groups(r.Account)}
	if r.Path != "" {
		spec["nonResourceAttributes"] = map[string]any{"path": r.Path, "verb": r.Verb}
	} else {
		spec["resourceAttributes"] = map[string]any{
			"namespace": r.Namespace, "verb": r.Verb, "group": r.Group, "resource": r.Resource, "subresource": r.Subresource, "name": r.Name,
		}
	}
	o, err := c.send(ctx, request{
		verb: "ask", ref: plan.Ref{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}, method: http.MethodPost, under: true, safe: true,
		body: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec},
	})
	return kobj.True(o, "status", "allowed"), err
}

// groups returns the groups that a ServiceAccount is in.
func groups(account string) []any {
	out := kobj.Values("system:authenticated")
	if rest, ok := strings.CutPrefix(account, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		out = append(out, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return out
}

// Apply implements run.Cluster.
func (c *Cluster) Apply(ctx context.Context, o kobj.Object, manager string, force, dryRun bool) (kobj.Object, error) {
	query := url.Values{"fieldManager": {manager}, "fieldValidation": {"Warn"}}
	if force {
		query.Set("force", "true")
	}
	return c.send(ctx, request{
		verb: "apply", ref: plan.RefTo(o), method: http.MethodPatch, query: trial(query, dryRun), safe: true,
		header: map[string]string{"Content-Type": "application/apply-patch+yaml"}, body: o,
	})
}

// Patch implements run.Cluster.
func (c *Cluster) Patch(ctx context.Context, ref plan.Ref, patch run.Patch, dryRun bool) (kobj.Object, error) {
	r := request{verb: "patch", ref: ref, method: http.MethodPatch, query: trial(url.Values{"fieldManager": {run.Manager}}, dryRun)}
	if patch.JSON != nil {
		r.body, r.header = patch.JSON, map[string]string{"Content-Type": "application/json-patch+json"}
	} else {
		r.body, r.header = patch.Merge, map[string]string{"Content-Type": "application/merge-patch+json"}
	}
	return c.send(ctx, r)
}

// Delete implements run.Cluster.
func (c *Cluster) Delete(ctx context.Context, ref plan.Ref, opt run.Deletion, dryRun bool) error {
	if opt.UID == "" {
		return fmt.Errorf("delete %s: which one is not said (no UID)", ref)
	}
	still := map[string]any{"uid": opt.UID}
	if opt.ResourceVersion != "" {
		still["resourceVersion"] = opt.ResourceVersion
	}
	body := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": still, "propagationPolicy": "Background"}
	if opt.Orphan {
		body["propagationPolicy"] = "Orphan"
	}
	if dryRun {
		body["dryRun"] = kobj.Values("All")
	}
	_, err := c.send(ctx, request{verb: "delete", ref: ref, method: http.MethodDelete, body: body})
	var refused *run.RefusedError
	if errors.As(err, &refused) && refused.Why == run.NotFound {
		return nil
	}
	return err
}

// Create implements run.Cluster.
func (c *Cluster) Create(ctx context.Context, o kobj.Object, dryRun bool) (kobj.Object, error) {
	return c.send(ctx, request{
		verb: "create", ref: plan.RefTo(o), method: http.MethodPost, under: true,
		query: trial(url.Values{"fieldManager": {run.Manager}}, dryRun), body: o,
	})
}

// trial makes a request one that stores nothing, where that is wanted.
func trial(query url.Values, dryRun bool) url.Values {
	if dryRun {
		query.Set("dryRun", "All")
	}
	return query
}
