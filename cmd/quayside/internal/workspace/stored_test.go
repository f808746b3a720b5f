package workspace_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// storedFiles returns a workspace with the operator ops/widget, whose version 2.0.0 drops a stored
// version of its CRD.
func storedFiles() fstest.MapFS {
	const csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: widget.v%[1]s}
spec:
  version: %[1]s
  %[2]s
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: widget
        spec:
          selector: {matchLabels: {app: widget}}
          template:
            metadata: {labels: {app: widget}}
            spec: {containers: [{name: widget, image: "example.com/widget:%[1]s"}]}
`
	const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object}}}
`
	out := fstest.MapFS{}
	for name, text := range map[string]string{
		"quayside.yaml": `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: ours, namespace: olm, source: "package-manifests:catalog"}]
  kubernetesVersion: "1.37"
`,
		"subscriptions/widget.yaml": `apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: widget, namespace: ops}
spec: {name: widget, channel: stable, source: ours, sourceNamespace: olm, startingCSV: widget.v1.0.0}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: ops, namespace: ops}
`,
		"catalog/widget/widget.package.yaml": "packageName: widget\nchannels: [{name: stable, currentCSV: widget.v2.0.0}]\n",
		"catalog/widget/1.0.0/csv.yaml":      fmt.Sprintf(csv, "1.0.0", ""),
		"catalog/widget/1.0.0/crd.yaml":      fmt.Sprintf(crd, false) + "  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n",
		"catalog/widget/2.0.0/csv.yaml":      fmt.Sprintf(csv, "2.0.0", "replaces: widget.v1.0.0"),
		"catalog/widget/2.0.0/crd.yaml":      fmt.Sprintf(crd, true),
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// TestTrialChangesNothing resolves a copy of the inputs with an upgrade, which is held back because of a
// stored version. Resolving the original inputs afterwards must not add the migration step of that upgrade.
func TestTrialChangesNothing(t *testing.T) {
	files := storedFiles()
	open := func() *workspace.Project {
		p, err := workspace.Open(workspace.Files(files, "map:", "."), env(t))
		check(t, err)
		return p
	}
	p := open()
	in, err := workspace.ReadProblem(t.Context(), p, workspace.Request{Options: p.ResolveOptions()})
	check(t, err)
	first, err := workspace.Resolve(t.Context(), in)
	check(t, err)
	files[workspace.LockFile] = &fstest.MapFile{Data: lockfile.Format(first.Lock)}

	p = open()
	if in, err = workspace.ReadProblem(t.Context(), p, workspace.Request{Options: p.ResolveOptions()}); err != nil {
		t.Fatal(err)
	}
	trial := *in
	trial.Options.Upgrade = true
	tried, err := workspace.Resolve(t.Context(), &trial)
	check(t, err)
	if pin := tried.Lock.Pins[0]; pin.Version != "1.0.0" || pin.Storage == nil {
		t.Fatalf("the upgrade is not held back: %+v", pin)
	}
	res, err := workspace.Resolve(t.Context(), in)
	check(t, err)
	if pin := res.Lock.Pins[0]; pin.Storage != nil || len(res.Warnings) != len(first.Warnings) {
		t.Errorf("the trial changed the inputs: storage %+v, warnings %v", pin.Storage, res.Warnings)
	}
}
