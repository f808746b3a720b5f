package declare_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
)

const olmFiles = `
-- ops/a/s.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: etcd}
spec: {name: etcd, channel: "stable", source: c, sourceNamespace: olm}
-- ops/b/kustomization.yaml --
resources: [s.yaml]
-- ops/b/s.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: ops}
spec: {name: kafka, channel: "stable", source: c, sourceNamespace: olm}
-- ops/v/s.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: vault, namespace: ops}
spec: {name: vault, channel: "${CHANNEL}", source: c, sourceNamespace: olm}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: script, namespace: ops}
data: {run.sh: "echo ${HOME}"}
`

// application returns an Application with a source and a destination.
func application(source, destination string) string {
	return "-- argo/app.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app}\nspec:\n  destination: " + destination + "\n  source: " + source + "\n"
}

// fluxObject returns a Kustomization of Flux.
func fluxObject(spec string) string {
	return "-- argo/app.yaml --\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k, namespace: flux-system}\nspec:\n  sourceRef: {kind: GitRepository, name: x}\n" + spec
}

// TestEntryPoints reads declarations as the GitOps tool applies them.
func TestEntryPoints(t *testing.T) {
	const etcdGroup = "apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\nmetadata: {name: p}\nspec:\n  remediationAction: enforce\n  object-templates:\n  - complianceType: musthave\n    objectDefinition: "
	for name, c := range map[string]struct {
		paths, more, want string
	}{
		"destination namespace": {
			paths: "argo/app.yaml", more: application("{path: ops/a}", "{namespace: east}"), want: "east/etcd etcd [stable]\n",
		},
		"kustomize options": {
			paths: "argo/app.yaml", more: application("{path: ops/b, kustomize: {namespace: other, patches: [{target: {kind: Subscription}, patch: '- {op: replace, path: /spec/channel, value: fast}'}]}}", "{namespace: x}"),
			want: "other/kafka kafka [fast]\n",
		},
		"kustomize options in the directory": {
			paths: "argo/app.yaml", more: application("{path: ops/b}", "{}") + "-- ops/b/.argocd-source-app.yaml --\nkustomize: {namespace: other}\n", want: "other/kafka kafka [stable]\n",
		},
		"kustomize options without a kustomization": {
			paths: "argo/app.yaml", more: application("{path: ops/a, kustomize: {namespace: other}}", "{}"),
			want: `argo/app.yaml:6:18: Application "app" sets spec.source.kustomize, but "ops/a" has no kustomization` + "\n",
		},
		"a plugin": {
			paths: "argo/app.yaml", more: application("{path: ops/b, plugin: {name: x}}", "{}"),
			want: `ops/b/s.yaml:1:1: Application "app" makes changes that are only known in a cluster: the output of a plugin` + "\n",
		},
		"subdirectories": {
			paths: "argo/app.yaml", more: application("{path: ops, directory: {recurse: true, exclude: 'v/*'}}", "{namespace: east}"), want: "east/etcd etcd [stable]\nops/kafka kafka [stable]\n",
		},
		"an app of apps": {
			paths: "root.yaml", more: application("{path: ops/a}", "{namespace: east}") + "-- root.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec: {source: {path: argo}}\n", want: "east/etcd etcd [stable]\n",
		},
		"an ApplicationSet, for one cluster": {
			paths: "set.yaml@prod", more: "-- set.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{list: {elements: [{c: dev, ns: one}, {c: prod, ns: two}]}}]\n  template: {spec: {source: {path: ops/a}, destination: {name: '{{c}}', namespace: '{{ns}}'}}}\n",
			want: "two/etcd etcd [stable]\n",
		},
		"an ApplicationSet that cannot be evaluated": {
			paths: "set.yaml", more: "-- set.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{clusters: {}}]\n  template: {spec: {source: {path: '{{name}}'}}}\n",
			want: `set.yaml:1:1: cannot tell what ApplicationSet "s" applies: its path * is only known in a cluster` + "\n",
		},
		"Flux": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  targetNamespace: east\n  patches: [{patch: '- {op: add, path: /spec/startingCSV, value: v1}', target: {kind: Subscription}}]\n  postBuild: {substitute: {CHANNEL: fast}}\n"),
			want: "east/vault vault [fast]\n",
		},
		"Flux, with a value of a Secret": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n"),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}, perhaps with a value of Secret vars, which is only known in a cluster` + "\n",
		},
		"Flux, with no value": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substitute: {X: y}}\n"),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}, but has no value for it` + "\n",
		},
		"a pattern": {
			paths: "ops/[ab]", more: "", want: "ops/kafka kafka [stable]\nops/a/s.yaml:3:11: metadata.namespace: missing\n",
		},
		"a pattern without a match": {
			paths: "ops/*/prod", more: "", want: "ops/*/prod: matches no file or directory: file does not exist\n",
		},
		"an Application of nothing": {
			paths: "argo/app.yaml", more: application("{chart: x, repoURL: https://charts.example.com}", "{}"), want: "argo/app.yaml: applies nothing of this repository: file does not exist\n",
		},
		"a policy": {
			paths: "p.yaml", more: "-- p.yaml --\n" + etcdGroup + "{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: etcd, namespace: east}, spec: {name: etcd, source: c, sourceNamespace: olm}}\n", want: "east/etcd etcd []\n",
		},
		"a policy with a template": {
			paths: "p.yaml", more: "-- p.yaml --\n" + etcdGroup + "{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {name: etcd, namespace: '{{hub x hub}}'}, spec: {name: etcd, source: c, sourceNamespace: olm}}\n",
			want: "p.yaml:8:121: metadata.namespace: templates are not supported: use literal values, with one policy per environment\n",
		},
		"a placeholder of Vault": {
			paths: "p.yaml", more: "-- p.yaml --\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: ops}\nspec: {name: etcd, source: c, sourceNamespace: olm, config: {env: [{name: T, value: '<path:secret/x#t>'}]}}\n",
			want: `p.yaml:4:85: spec.config.env[0].value: "<path:secret/x#t>" is replaced by argocd-vault-plugin, with a value that is only known in a cluster` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, cluster, _ := strings.Cut(c.paths, "@")
			set, err := declare.LoadFS(files(olmFiles+c.more), declare.LoadOptions{Paths: []declare.Path{{Path: file, Cluster: cluster}}})
			got := ""
			if set != nil {
				for _, s := range set.Subscriptions {
					got += s.Key() + " " + s.Package + " [" + strings.Join(s.Channels, " ") + "]\n"
				}
			}
			if err != nil {
				got += err.Error() + "\n"
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
