package declare_test

import (
	"strings"
	"testing"
	"testing/fstest"

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

// fromVars is the spec of a Flux Kustomization that takes variables from a ConfigMap.
const fromVars = "  path: ./ops/v\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"

// configMap returns a ConfigMap with variables.
func configMap(file, data string) string {
	return "-- " + file + " --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: " + data + "\n"
}

// policyGenerator returns a PolicyGenerator with manifests, and its kustomization.
func policyGenerator(defaults, manifests string) string {
	return "-- policies/kustomization.yaml --\ngenerators: [generator.yml]\nnamespace: policies\n-- policies/generator.yml --\napiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\npolicyDefaults: {namespace: x, " + defaults + "}\npolicies: [{name: p, manifests: [" + manifests + "]}]\n"
}

// inlineGenerator is a kustomization with a PolicyGenerator as text.
const inlineGenerator = "-- policies/kustomization.yaml --\nresources: []\nnamespace: policies\ngenerators:\n- |-\n  apiVersion: policy.open-cluster-management.io/v1\n  kind: PolicyGenerator\n  policyDefaults: {namespace: x, remediationAction: enforce}\n  policies:\n  - name: p\n    manifests: [{path: op.yaml}]\n"

// policyManifest returns a Subscription in a file.
func policyManifest(file, namespace, channel string) string {
	return "-- " + file + " --\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: " + namespace + "}\nspec: {name: etcd, channel: " + channel + ", source: c, sourceNamespace: olm}\n"
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
			want: `ops/b/s.yaml:1:1: Application "app" makes changes that are not known offline: the output of a plugin` + "\n",
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
			want: `set.yaml:1:1: the objects that ApplicationSet "s" applies are unknown: its path * is not available offline` + "\n",
		},
		"Flux": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  targetNamespace: east\n  patches: [{patch: '- {op: add, path: /spec/startingCSV, value: v1}', target: {kind: Subscription}}]\n  postBuild: {substitute: {CHANNEL: fast}}\n"),
			want: "east/vault vault [fast]\n",
		},
		"Flux, with a value of a Secret": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substituteFrom: [{kind: Secret, name: vars}]}\n"),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}. The value may come from Secret vars, which is not available offline` + "\n",
		},
		"Flux, with no value": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substitute: {X: y}}\n"),
			want: "ops/vault vault []\n",
		},
		"Flux, without any value": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {}\n"),
			want: "ops/vault vault [${CHANNEL}]\n",
		},
		"Flux, with a value of a ConfigMap": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + configMap("vars.yaml", "{CHANNEL: \"fa\\nst\"}"), want: "ops/vault vault [fast]\n",
		},
		"Flux, with a value of another namespace": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + strings.Replace(configMap("vars.yaml", "{CHANNEL: fast}"), "flux-system", "other", 1),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}. The value may come from ConfigMap vars, which is not available offline` + "\n",
		},
		"Flux, with a value of several ConfigMaps": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + configMap("dev/vars.yaml", "{CHANNEL: fast}") + configMap("prod/vars.yaml", "{CHANNEL: slow}"),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}. The value may come from ConfigMap vars, which is not available offline` + "\n",
		},
		"Flux, with a value of the ConfigMap in the directory": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + configMap("argo/vars.yaml", "{CHANNEL: fast}") + configMap("prod/vars.yaml", "{CHANNEL: slow}"), want: "ops/vault vault [fast]\n",
		},
		"Flux, with a value of a ConfigMap that is changed": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + configMap("vars/vars.yaml", "{CHANNEL: fast}") + "-- vars/kustomization.yaml --\nresources: [vars.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '- {op: replace, path: /data/CHANNEL, value: slow}'}]\n",
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL}. The value may come from ConfigMap vars, which is not available offline` + "\n",
		},
		"Flux, with a value of a generated ConfigMap": {
			paths: "argo/app.yaml", more: fluxObject(fromVars) + "-- vars/kustomization.yaml --\nnamespace: flux-system\ngeneratorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator: [{name: vars, literals: [CHANNEL=fast]}]\n", want: "ops/vault vault [fast]\n",
		},
		"Flux, with a Secret of other names": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: secrets}]}\n") + configMap("vars.yaml", "{CHANNEL: fast}") + strings.NewReplacer("ConfigMap", "Secret", "name: vars", "name: secrets").Replace(configMap("secrets.yaml", "{TOKEN: x}")),
			want: "ops/vault vault [fast]\n",
		},
		"Flux, with a Secret of the name": {
			paths: "argo/app.yaml", more: fluxObject("  path: ./ops/v\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: secrets}]}\n") + configMap("vars.yaml", "{CHANNEL: fast}") + strings.NewReplacer("ConfigMap", "Secret", "name: vars", "name: secrets").Replace(configMap("secrets.yaml", "{CHANNEL: x}")),
			want: `ops/v/s.yaml:1:1: Kustomization "k" replaces ${CHANNEL} with a value that is not available offline` + "\n",
		},
		"a Kustomization with a variable in its path": {
			paths: "root.yaml", more: "-- root.yaml --\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: root, namespace: flux-system}\nspec:\n  sourceRef: {kind: GitRepository, name: x}\n  path: ./argo\n  postBuild: {substitute: {WHICH: b}}\n" + fluxObject("  path: ./ops/${WHICH}\n"),
			want: "ops/kafka kafka [stable]\n",
		},
		"an app of apps that patches": {
			paths: "root.yaml", more: application("{path: ops/a}", "{namespace: east}") + "-- argo/kustomization.yaml --\nresources: [app.yaml]\n-- prod/kustomization.yaml --\nresources: [../argo]\npatches: [{target: {kind: Application}, patch: \"- {op: replace, path: /spec/source/path, value: ops/b}\\n- {op: add, path: /spec/source/kustomize, value: {namespace: west}}\"}]\n-- root.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec: {source: {path: prod}}\n",
			want: "west/kafka kafka [stable]\n",
		},
		"an app of apps as a kustomization": {
			paths: "prod/kustomization.yaml", more: application("{path: ops/a}", "{namespace: east}") + "-- argo/kustomization.yaml --\nresources: [app.yaml]\n-- prod/kustomization.yaml --\nresources: [../argo]\npatches: [{target: {kind: Application}, patch: '- {op: replace, path: /spec/destination/namespace, value: west}'}]\n",
			want: "west/etcd etcd [stable]\n",
		},
		"an app of apps that cannot be built": {
			paths: "root.yaml", more: application("{path: ops/a}", "{namespace: east}") + "-- argo/kustomization.yaml --\nresources: [app.yaml]\n-- prod/kustomization.yaml --\nresources: [../argo, missing.yaml]\nnamePrefix: x-\n-- root.yaml --\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\nspec: {source: {path: prod}}\n",
			want: `root.yaml:4:23: the objects that Application "root" applies are unknown: "prod" has entry points, but cannot be built: prod/kustomization.yaml:1:22: "missing.yaml": file does not exist` + "\n",
		},
		"a PolicyGenerator": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: op.yaml, patches: [{metadata: {namespace: west}, spec: {channel: fast}}]}") + policyManifest("policies/op.yaml", "east", "stable"), want: "west/etcd etcd [fast]\n",
		},
		"a PolicyGenerator, with a directory and a kustomization": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: dir}, {path: k}") + policyManifest("policies/dir/op.yml", "east", "stable") + policyManifest("policies/k/op.yaml", "west", "stable") + "-- policies/k/kustomization.yaml --\nnamespace: north\nresources: [op.yaml]\n",
			want: "east/etcd etcd [stable]\nnorth/etcd etcd [stable]\n",
		},
		"a PolicyGenerator, with a part of an object": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: op.yaml}, {path: part.yaml}") + policyManifest("policies/op.yaml", "east", "stable") + "-- policies/part.yaml --\nkind: Deployment\nspec: {replicas: 2}\n", want: "east/etcd etcd [stable]\n",
		},
		"a PolicyGenerator, disabled or for removal": {
			paths: "policies", more: policyGenerator("disabled: true", "{path: op.yaml}") + policyManifest("policies/op.yaml", "east", "stable") + "-- other/kustomization.yaml --\nresources: [../policies]\n",
			want: "",
		},
		"a PolicyGenerator, with a template": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: op.yaml}") + policyManifest("policies/op.yaml", "east", "'{{hub .x hub}}'"),
			want: "policies/op.yaml:4:29: spec.channel: templates are not supported: use literal values, with one policy per environment\n",
		},
		"a PolicyGenerator, with a template of a kustomization": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: k}") + policyManifest("policies/k/op.yaml", "east", "'{{hub .x hub}}'") + "-- policies/k/kustomization.yaml --\nresources: [op.yaml]\n",
			want: "policies/generator.yml:4:12: spec.channel: templates are not supported: use literal values, with one policy per environment\n",
		},
		"a PolicyGenerator in the kustomization": {
			paths: "policies", more: inlineGenerator + policyManifest("policies/op.yaml", "east", "stable"), want: "east/etcd etcd [stable]\n",
		},
		"a PolicyGenerator in the kustomization, with a fault": {
			paths: "policies", more: inlineGenerator,
			want: `policies/kustomization.yaml:4:3: PolicyGenerator of policy.open-cluster-management.io/v1 is skipped, because its output is unknown: policies/kustomization.yaml:9:5: policy "p": "op.yaml": file does not exist` + "\n  hint: write its output into the repository, and list the file under resources\n",
		},
		"a PolicyGenerator, with a missing manifest": {
			paths: "policies", more: policyGenerator("remediationAction: enforce", "{path: op.yaml}"),
			want: `policies/kustomization.yaml:1:14: PolicyGenerator of policy.open-cluster-management.io/v1 is skipped, because its output is unknown: policies/generator.yml:4:12: policy "p": "op.yaml": file does not exist` + "\n  hint: write its output into the repository, and list the file under resources\n",
		},
		"an Application of a chart with declarations": {
			paths: "argo/app.yaml", more: application("{path: chart}", "{}") + "-- chart/Chart.yaml --\n{name: x, version: 1.0.0}\n-- chart/templates/s.yaml --\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nspec: {{ .Values.spec }}\n",
			want: `argo/app.yaml:6:18: the objects that Application "app" applies are unknown: the Helm chart "chart" cannot be rendered: no program to render it` + "\n",
		},
		"an Application of another chart": {
			paths: "argo/app.yaml", more: application("{path: chart}", "{}") + "-- chart/Chart.yaml --\n{name: x, version: 1.0.0}\n-- chart/templates/s.yaml --\napiVersion: apps/v1\nkind: Deployment\n", want: "",
		},
		"a pattern": {
			paths: "ops/[ab]", more: "", want: "ops/kafka kafka [stable]\nops/a/s.yaml:3:11: metadata.namespace: missing\n",
		},
		"a pattern without a match": {
			paths: "ops/*/prod", more: "", want: "ops/*/prod: matches no file or directory: file does not exist\n",
		},
		"an Application of nothing": {
			paths: "argo/app.yaml", more: application("{ref: x, repoURL: https://git.example.com}", "{}"), want: "argo/app.yaml: applies nothing of this repository: file does not exist\n",
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
			want: `p.yaml:4:85: spec.config.env[0].value: "<path:secret/x#t>" is replaced by argocd-vault-plugin, with a value that is not available offline` + "\n",
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

// TestEntryPointTargets checks the warning for an entry point with a patch target that selects no object.
func TestEntryPointTargets(t *testing.T) {
	more := application("{path: ops/b, kustomize: {patches: [{target: {kind: Deployment}, patch: '- {op: remove, path: /spec}'}]}}", "{}")
	set, err := declare.LoadFS(files(olmFiles+more), declare.LoadOptions{Paths: []declare.Path{{Path: "argo/app.yaml"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, w := range set.Warnings {
		got += w.Pos.String() + " " + w.Code + "\n"
	}
	if got != "argo/app.yaml:6:18 no-target\n" {
		t.Error(got)
	}
}

// TestSameDirectoryTwice reads a directory that several entry points apply, with different namespaces, patches
// or file patterns.
func TestSameDirectoryTwice(t *testing.T) {
	list := "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{list: {elements: [{ns: one}, {ns: two}]}}]\n  template: {spec: {source: {path: plain, directory: {include: a.yaml}}, destination: {namespace: '{{ns}}'}}}\n"
	app := func(fields string) string {
		return "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {" + fields + "}, destination: {namespace: one}}\n"
	}
	patch := func(name string) string {
		return "path: built, kustomize: {namespace: " + name + ", patches: [{target: {kind: Subscription}, patch: '- {op: replace, path: /spec/channel, value: " + name + "}'}]}"
	}
	request := func(name string) string {
		return "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: " + name + "}\nspec: {name: " + name + ", channel: c, source: s, sourceNamespace: olm}\n"
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"entries.yaml": list + app("path: plain, directory: {include: b.yaml}") + app(patch("three")) + app(patch("four")),
		"plain/a.yaml": request("a"), "plain/b.yaml": request("b"), "built/k.yaml": request("k"), "built/kustomization.yaml": "resources: [k.yaml]\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	set, err := declare.LoadFS(files, declare.LoadOptions{Paths: paths("entries.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"four/k k four ", "one/a a c ", "one/b b c ", "three/k k three ", "two/a a c "}
	if d := cmp.Diff(want, readOperators(set)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestBrokenBase checks that an applied kustomization whose base cannot be parsed is listed as unread.
func TestBrokenBase(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"app.yaml":                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {path: over}}\n",
		"over/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [s.yaml]\nx: [\n",
		"base/s.yaml": "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: k, namespace: a}\nspec: {name: k}\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	set, err := declare.LoadFS(files, declare.LoadOptions{Paths: paths("app.yaml")})
	if err == nil || len(set.Unread) != 1 || set.Unread[0].Tolerated || set.Unread[0].Build != "over" || !set.Unread[0].MayDeclare("a", "k", "k") {
		t.Errorf("%v: %+v", err, set.Unread)
	}
}

// TestTwoObjectsOfOneKustomization checks the error for two policies of one kustomization that install one
// operator differently.
func TestTwoObjectsOfOneKustomization(t *testing.T) {
	policy := func(name, channel string) string {
		return "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: " + name + ", namespace: p}\nspec: {remediationAction: enforce, complianceType: musthave, upgradeApproval: Automatic, subscription: {name: etcd, namespace: a, channel: " + channel + ", source: s, sourceNamespace: olm}}\n"
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{"k/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "k/a.yaml": policy("a", "one"), "k/b.yaml": policy("b", "two")} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	_, err := declare.LoadFS(files, declare.LoadOptions{Paths: paths("k")})
	want := `k/a.yaml:1:1: subscription "a/etcd" is declared differently by several objects of "k": a cluster can have only one of them: list each file in a separate workspace`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
