package run

import (
	"context"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// NewLiveCluster returns a Client for a live cluster.
func NewLiveCluster(c *cluster.Client) Client { return liveCluster{cluster.NewWriter(c, Manager)} }

type liveCluster struct{ *cluster.Writer }

// Allowed implements verify.Reader.
func (l liveCluster) Allowed(ctx context.Context, r verify.Review) (bool, error) {
	spec := map[string]any{"user": r.Account, "groups": accountGroups(r.Account)}
	if r.Path != "" {
		spec["nonResourceAttributes"] = map[string]any{"path": r.Path, "verb": r.Verb}
	} else {
		spec["resourceAttributes"] = map[string]any{
			"namespace": r.Namespace, "verb": r.Verb, "group": r.Group, "resource": r.Resource, "subresource": r.Subresource, "name": r.Name,
		}
	}
	o, err := l.Create(ctx, k8s.Object{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}, false)
	return k8s.True(o, "status", "allowed"), err
}

// TryUpdate implements verify.ProbeReader.
func (l liveCluster) TryUpdate(ctx context.Context, ref k8s.Ref) error {
	_, err := l.Patch(ctx, ref, cluster.Patch{Merge: map[string]any{}}, true)
	return err
}

// accountGroups returns the groups of a ServiceAccount.
func accountGroups(account string) []any {
	out := k8s.Values("system:authenticated")
	if rest, ok := strings.CutPrefix(account, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		out = append(out, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return out
}
