package declare_test

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
)

// TestIgnored checks the warnings about ignored objects and files.
func TestIgnored(t *testing.T) {
	const sub = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: etcd}\nspec: {name: etcd, source: hub, sourceNamespace: olm}\n"
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"kinds are counted": {
			files: files("-- s/all.yaml --\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n---\n{apiVersion: apps/v1, kind: Deployment}\n---\nreplicas: 3\n-- s/list.json --\n" +
				`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret"}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}]}`),
			want: "Namespace n at s/list.json:1:88\n4 objects of other kinds were ignored: 2 ConfigMap, 1 Deployment, 1 Secret\n",
		},
		"a chart": {
			files: files("-- s/umbrella/Chart.yaml --\napiVersion: v2\nname: umbrella\n-- s/umbrella/values.yaml --\nchannel: stable\n-- s/umbrella/templates/sub.yaml --\nkind: {{ .Values.kind }}\n-- s/umbrella/templates/_help.tpl --\n{{ define }}\n" +
				"-- s/umbrella/charts/one/Chart.yaml --\nname: one\n-- s/umbrella/charts/one/templates/sub.yaml --\n{{- if .Values.on }}\n" + sub + "{{- end }}\n-- s/loose.yaml --\nmetadata:\n  name: {{ .Release.Name }}\n" +
				"-- s/plain.yaml --\n" + "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: b}\nspec:\n  package: etcd-{{ .Values.suffix }}\n"),
			want: `Helm templates are ignored: 2 files of the chart "s/umbrella", "s/loose.yaml", "s/plain.yaml": list the directory of the chart, or the Application that applies it, in spec.declarations [helm-templates]` + "\n",
		},
		"braces that are none of Helm's": {
			files: files("-- s/a.yaml --\napiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: b, annotations: {x: '{{ y }}'}}\nspec: {package: a} # {{\n---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: apps}\nspec:\n  template: {metadata: {name: '{{path}}'}}\n  other: x-{{path}}\n"),
			want:  "b/a a [] [] at s/a.yaml:1:1, channel at s/a.yaml:4:7\n1 object of other kinds was ignored: 1 ApplicationSet\n",
		},
		"an app of apps": {
			files: files("-- s/apps.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: etcd}\nspec:\n  source:\n    path: operators/etcd\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {sources: [{path: web}, {chart: x}, {path: gone}]}\n" +
				"---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec: {source: {path: more}}\n-- more/set.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\nspec: {generators: [{git: {directories: [{path: 'fleet/*'}]}}]}\n" +
				"-- operators/etcd/sub.yaml --\n" + sub + "-- fleet/etcd/kustomization.yaml --\nresources: [sub.yaml]\n-- fleet/etcd/sub.yaml --\n" + sub + "-- web/web.yaml --\n{apiVersion: v1, kind: Service}\n"),
			want: "3 objects of other kinds were ignored: 3 Application\n",
		},
		"policies": {
			files: files(`-- s/policy.yaml --
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: {name: etcd}
spec:
  policy-templates:
  - objectDefinition:
      apiVersion: policy.open-cluster-management.io/v1
      kind: ConfigurationPolicy
      metadata: {name: etcd-sub}
      spec:
        object-templates:
        - complianceType: musthave
          objectDefinition:
            apiVersion: operators.coreos.com/v1alpha1
            kind: Subscription
            metadata: {name: etcd, namespace: etcd}
            spec: {name: etcd, source: hub, sourceNamespace: olm}
  - objectDefinition:
      apiVersion: policy.open-cluster-management.io/v1beta1
      kind: OperatorPolicy
      metadata: {name: kafka}
      spec: {complianceType: musthave, upgradeApproval: None, subscription: {name: kafka, namespace: kafka}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: {name: idle}
spec:
  disabled: true
  policy-templates:
  - objectDefinition:
      apiVersion: policy.open-cluster-management.io/v1beta1
      kind: OperatorPolicy
      metadata: {name: idle}
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: work}
spec: {workload: {manifests: [{apiVersion: policy.open-cluster-management.io/v1beta1, kind: OperatorPolicy, metadata: {name: far}}]}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata: {name: neither}
spec: {policy-templates: [{objectDefinition: {apiVersion: policy.open-cluster-management.io/v1, kind: ConfigurationPolicy}}]}
`),
			want: "etcd/etcd etcd [] [] at s/policy.yaml:14:13, channel at s/policy.yaml:17:19\nkafka/kafka kafka [] [] at s/policy.yaml:19:7, channel at s/policy.yaml:22:77\n" +
				`s/policy.yaml:7:7: quayside installs the operator although remediationAction is inform: to prevent this, remove the policy from the declarations [policy-informs]` + "\n" +
				`s/policy.yaml:22:13: quayside installs the operator although remediationAction is inform: to prevent this, remove the policy from the declarations [policy-informs]` + "\n" +
				`s/policy.yaml:31:7: OperatorPolicy "idle" is ignored, because Policy "idle" is disabled [not-declared]` + "\n" +
				`s/policy.yaml:38:31: OperatorPolicy "far" nested in ManifestWork "work" is ignored: declare it in its own file [not-declared]` + "\n" +
				"2 objects of other kinds were ignored: 1 ManifestWork, 1 Policy\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := declare.LoadFS(c.files, declare.LoadOptions{Paths: paths("s")})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, declared(set)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestPositionsAreInSourceFiles builds an object of every kind, and checks that all positions are in
// source files instead of built objects.
func TestPositionsAreInSourceFiles(t *testing.T) {
	fsys := files(`-- s/kustomization.yaml --
namePrefix: p-
resources: [all.yaml]
-- s/all.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: a, namespace: ns}
spec: {name: a, source: hub, sourceNamespace: olm}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: a, namespace: ns}
spec: {selector: {matchLabels: {a: b}}, targetNamespaces: [x]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: hub, namespace: olm}
spec: {sourceType: grpc, image: quay.io/x/y}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: a.v1, namespace: ns}
spec: {version: 1.0.0}
---
apiVersion: v1
kind: Namespace
metadata: {name: ns}
---
apiVersion: policy.open-cluster-management.io/v1beta1
kind: OperatorPolicy
metadata: {name: p}
spec: {complianceType: musthave, upgradeApproval: None, operatorGroup: {name: p}, subscription: {name: p, namespace: other}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: b}
spec: {source: {path: b}}
-- b/sub.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: b}
---
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: b, namespace: b}
spec: {package: b}
`)
	set, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths("s")})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var visit func(v reflect.Value, at string)
	visit = func(v reflect.Value, at string) {
		if pos, is := v.Interface().(diag.Pos); is {
			seen++
			if pos.File != "s/all.yaml" && pos.File != "s/kustomization.yaml" || pos.Line > 35 || pos.File == "s/kustomization.yaml" && pos.Line != 0 {
				t.Errorf("position of %s: %s", at, pos)
			}
			return
		}
		switch v.Kind() { //nolint:exhaustive // other kinds contain no positions
		case reflect.Struct:
			for i := range v.NumField() {
				visit(v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		case reflect.Slice:
			for i := range v.Len() {
				visit(v.Index(i), at)
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				visit(v.MapIndex(k), at+"["+k.String()+"]")
			}
		case reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem(), at)
			}
		}
	}
	visit(reflect.ValueOf(set), "Set")
	if seen < 20 || len(set.CSVs) != 1 || len(set.Warnings) != 2 {
		t.Errorf("%d places, %d ClusterServiceVersions, warnings %v", seen, len(set.CSVs), set.Warnings)
	}
}
