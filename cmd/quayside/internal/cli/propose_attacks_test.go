package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/forgetest"
)

// TestProposeAttacks checks which upgrades propose merges automatically if low severity is permitted: a
// harmless one, but none that gives more power. TestMutants checks the decision for the whole table of attacks.
func TestProposeAttacks(t *testing.T) {
	const pod, rules = "containers: [{name: c,", `rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]`
	for name, c := range map[string]struct{ old, now string }{
		"harmless":      {},
		"privileged":    {pod, "containers: [{name: c, securityContext: {privileged: true},"},
		"host":          {pod, "hostPID: true, " + pod},
		"host path":     {pod, "volumes: [{name: v, hostPath: {path: /}}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /host}],"},
		"other account": {"template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: demo,", "template: {metadata: {labels: {a: b}}, spec: {serviceAccount: default,"},
		"secrets":       {rules, `rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]`},
		"everything":    {rules, `rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`},
		"exec":          {rules, `rules: [{apiGroups: [""], resources: [pods/exec], verbs: [create]}]`},
		"escalate":      {rules, `rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := forgetest.New(t, "github")
			root := t.TempDir()
			bare, work := filepath.Join(root, "bare.git"), filepath.Join(root, "work")
			put(t, work, "quayside.yaml", "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  catalogs:\n  - {name: test, namespace: olm, source: \"dir:catalog\"}\n  propose: {automerge: {maxSeverity: low}}\n")
			put(t, work, "subscriptions/demo.yaml", subscriptionTo("demo"))
			put(t, work, "catalog/catalog.json", demoCatalog(t, manifests("demo", "1.0.0")))
			mustRun(t, work, "resolve", "--render", "--offline")
			gitIn(t, work, "init", "-q", "-b", "main")
			commitAll(t, work, "start")
			upgraded := manifests("demo", "1.0.1")
			if c.old != "" && !strings.Contains(upgraded[0], c.old) {
				t.Fatalf("%q is not in\n%s", c.old, upgraded[0])
			}
			upgraded[0] = strings.Replace(upgraded[0], c.old, c.now, 1)
			put(t, work, "catalog/catalog.json", demoCatalog(t, manifests("demo", "1.0.0"), upgraded))
			commitAll(t, work, "catalog")
			gitIn(t, root, "clone", "-q", "--bare", work, bare)
			gitIn(t, bare, "remote", "remove", "origin")
			gitIn(t, work, "remote", "add", "origin", bare)
			got := inJob(t, s, work, "propose", "--offline", "--push", "origin", "--pull-request")
			pulls := s.Pulls()
			if len(pulls) != 1 {
				t.Fatalf("exit code %d, %d pull requests:\n%s", got.code, len(pulls), got.stderr)
			}
			if merged := pulls[0].Auto != ""; merged != (name == "harmless") {
				t.Errorf("merged automatically: %t\n%s\n%s", merged, got.stderr, pulls[0].Body)
			}
		})
	}
}

// demoCatalog returns a catalog with the package demo, whose releases 1.0.0 and 1.0.1 consist of the given manifests.
func demoCatalog(t *testing.T, releases ...[]string) string {
	t.Helper()
	type m = map[string]any
	objects := []any{m{"schema": "olm.package", "name": "demo", "defaultChannel": "stable"}}
	entries := []m{{"name": "demo.v1.0.0"}, {"name": "demo.v1.0.1", "replaces": "demo.v1.0.0"}}[:len(releases)]
	objects = append(objects, m{"schema": "olm.channel", "package": "demo", "name": "stable", "entries": entries})
	for i, release := range releases {
		properties := []m{{"type": "olm.package", "value": m{"packageName": "demo", "version": []string{"1.0.0", "1.0.1"}[i]}}, {"type": "olm.gvk", "value": m{"group": "demo.io", "version": "v1", "kind": "Thing"}}}
		for _, object := range release {
			properties = append(properties, m{"type": "olm.bundle.object", "value": m{"data": base64.StdEncoding.EncodeToString([]byte(object))}})
		}
		objects = append(objects, m{"schema": "olm.bundle", "package": "demo", "name": entries[i]["name"], "properties": properties})
	}
	var b strings.Builder
	for _, o := range objects {
		check(t, json.NewEncoder(&b).Encode(o))
	}
	return b.String()
}
