package needs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/render/needs"
)

// TestPermissionSignals grants single permissions to a subject. Each case is "verb resource.group".
func TestPermissionSignals(t *testing.T) {
	for _, c := range []struct {
		grant, subject string
		want           string // codes of the signals and CRDs that may be watched, separated by spaces
	}{
		{"get subscriptions.operators.coreos.com", "ServiceAccount", "reads"},
		{"watch subscriptions.operators.coreos.com", "ServiceAccount", "reads subscriptions.operators.coreos.com"},
		{"create subscriptions.operators.coreos.com", "ServiceAccount", "installs"},
		{"create clusterextensions.olm.operatorframework.io", "ServiceAccount", "installs"},
		{"* subscriptions.operators.coreos.com", "ServiceAccount", "installs subscriptions.operators.coreos.com"},
		{"create clusterserviceversions.operators.coreos.com", "ServiceAccount", "installs"},
		{"update clusterserviceversions.operators.coreos.com", "ServiceAccount", "changes-csv"},
		{"update catalogsources.operators.coreos.com", "ServiceAccount", "prepares"},
		{"update operators.operators.coreos.com", "ServiceAccount", ""},
		{"update operatorconditions.operators.coreos.com", "ServiceAccount", ""},
		{"get packagemanifests.packages.operators.coreos.com", "ServiceAccount", "packages"},
		{"get *.*", "ServiceAccount", "everything"},
		{"get subscriptions.*", "ServiceAccount", "everything"},
		{"get configmaps.*", "ServiceAccount", ""},
		{"create subscriptions.operators.coreos.com", "User", ""},
		{"create subscriptions.operators.coreos.com", "Group", ""},
	} {
		verb, what, _ := strings.Cut(c.grant, " ")
		resource, group, _ := strings.Cut(what, ".")
		role := k8s.New(k8s.RBACGroup+"/v1", "ClusterRole", "", "a")
		role["rules"] = []any{map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{verb}}}
		binding := k8s.New(k8s.RBACGroup+"/v1", "ClusterRoleBinding", "", "a")
		binding["roleRef"] = map[string]any{"apiGroup": k8s.RBACGroup, "kind": "ClusterRole", "name": "a"}
		subject := map[string]any{"kind": c.subject, "name": "a"}
		if c.subject == "ServiceAccount" {
			subject["namespace"] = "ops"
		}
		binding["subjects"] = []any{subject}
		signals, watched := needs.PermissionSignals([]k8s.Object{role, binding})
		var got []string
		for _, s := range signals {
			got = append(got, s.Code)
		}
		if d := cmp.Diff(c.want, strings.Join(append(got, watched...), " ")); d != "" {
			t.Errorf("%s of a %s (-want +got):\n%s", c.grant, c.subject, d)
		}
	}
}
