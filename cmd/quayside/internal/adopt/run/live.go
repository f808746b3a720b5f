package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/k8s"
)

// NewLiveCluster returns a Client for a live cluster.
func NewLiveCluster(c *cluster.Client) Client { return liveCluster{cluster.NewWriter(c, Manager), c} }

type liveCluster struct {
	*cluster.Writer
	client *cluster.Client
}

// Record implements Client.
func (l liveCluster) Record(ctx context.Context, o k8s.Object) (k8s.Object, error) {
	found, err := l.client.List(ctx, cluster.ListOptions{
		APIVersion: "v1", Kind: "Secret", Namespace: o.Namespace(), WithContent: true,
		Labels: snapshot.RecordSelector(snapshot.ReleaseOf(o.Key())) + ",version=" + k8s.Text(o, "metadata", "labels", "version"),
	})
	if err != nil {
		return nil, err
	}
	for _, secret := range found.Objects {
		secret["apiVersion"], secret["kind"] = "v1", "Secret"
		if k8s.Text(secret, "metadata", "uid") == k8s.Text(o, "metadata", "uid") {
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be read: %s", o.Key(), cmp.Or(found.Message, "it was changed, or lacks Helm's labels"))
}

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
