package settings_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/internal/provided"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/internal/testing/goldentest"
)

func TestGoldenSchemaIsShipped(t *testing.T) {
	goldentest.Compare(t, "../../schema/workspace.schema.json", settings.Schema())
}

func TestDefaults(t *testing.T) {
	for name, in := range map[string]string{
		"empty":  "",
		"header": "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n",
		"nulls":  "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {output: ~, clusters: [], gitops: ~}\n",
	} {
		got, err := settings.Parse("quayside.yaml", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(settings.Default(), got, cmpopts.IgnoreFields(settings.Workspace{}, "File", "Fields")); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

const full = `apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  declarations: [subscriptions/, ../operators, {path: more, overrides: true}]
  catalogs:
  - {name: operatorhubio, namespace: olm, source: "oci:catalogs/operatorhubio", priority: 3}
  - {name: own, source: "bundles:../corpus/bundles"}
  kubernetesVersion: "1.34"
  openshiftVersion: "4.20.1"
  requirements: warn
  sharedDependencies: false
  allowOverlap: true
  allowNames: [ClusterRole/cluster-admin, "ClusterRoleBinding/system:node", Namespace/kube-system, APIService/v1.apps, PriorityClass/system-x]
  output: rendered
  profile: flux
  certificates: secret
  proxy: {httpProxy: "http://proxy:3128", noProxy: ".svc"}
  mirrors: [mirrors.yaml]
  trust:
  - {match: quay.io/org/*, keys: [cosign.pub]}
  - {match: "*", identityRegexp: ".*@example.com", issuer: "https://accounts.example.com", trustRoot: trusted_root.json}
  imagePullSecrets: [pull]
  aggregatedRoles: false
  gitops: {sourceRef: {name: fleet}}
  clusters:
  - {name: prod, server: "https://kubernetes.default.svc", kubernetesVersion: "1.33", operators: ["a/*"], config: {nodeSelector: {b: c}}}
  - {name: stage}
  reporter: {enabled: true, image: registry.example.com/quayside-report:1.0.0, namespace: ops, leaderElection: true}
  policy: {failOn: medium, waivers: [{rule: rbac.wildcard, operator: ns/pkg, reason: known, expires: 2027-01-01}]}
  follows: ../dev/
  promotion: {healthy: 99.5%, soak: 24h, clusters: 10}
  globalCatalogNamespaces: [team]
`

func TestParse(t *testing.T) {
	got, err := settings.Parse("quayside.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &settings.Workspace{
		Declarations: []declare.Path{{Path: "subscriptions"}, {Path: "../operators"}, {Path: "more", Overrides: true}},
		Catalogs: []settings.CatalogSettings{
			{Name: "operatorhubio", Namespace: "olm", Source: "oci:catalogs/operatorhubio", Priority: 3},
			{Name: "own", Source: "bundles:../corpus/bundles"},
		},
		GlobalCatalogs:    []string{"team"},
		KubernetesVersion: "1.34", OpenShiftVersion: "4.20.1", Requirements: "warn", AllowOverlap: true,
		AllowNames:       []string{"ClusterRole/cluster-admin", "ClusterRoleBinding/system:node", "Namespace/kube-system", "APIService/v1.apps", "PriorityClass/system-x"},
		StorageMigration: "auto", Output: settings.Output{Path: "rendered"}, Profile: "flux", Certificates: "secret",
		Proxy: settings.Proxy{HTTPProxy: "http://proxy:3128", NoProxy: ".svc"}, Mirrors: []string{"mirrors.yaml"},
		Trust: []settings.Trust{
			{Match: "quay.io/org/*", Keys: []string{"cosign.pub"}},
			{Match: "*", IdentityRegexp: ".*@example.com", Issuer: "https://accounts.example.com", TrustRoot: "trusted_root.json"},
		},
		ImagePullSecrets: []string{"pull"},
		GitOps: &profile.GitOps{
			Name: "quayside", RemovedClusters: "keep", Revision: "main", Path: "rendered", Namespace: "flux-system", Granularity: "operator", ArgoCDSettings: profile.ArgoCDSettings{Project: "default"},
			FluxSettings: profile.FluxSettings{SourceRef: profile.SourceRef{Kind: "GitRepository", Name: "fleet", Namespace: "flux-system"}},
		},
		Clusters: []profile.Cluster{
			{Name: "prod", ArgoCDCluster: profile.ArgoCDCluster{Server: "https://kubernetes.default.svc"}, KubernetesVersion: "1.33", Operators: []string{"a/*"}, Config: []byte(`{"nodeSelector":{"b":"c"}}`)},
			{Name: "stage", Operators: []string{"*"}},
		},
		Reporter: settings.Reporter{Enabled: true, Image: "registry.example.com/quayside-report:1.0.0", Namespace: "ops", LeaderElection: true},
		Policy:   settings.Policy{FailOn: "medium", Waivers: []diag.Waiver{{Rule: "rbac.wildcard", Operator: "ns/pkg", Reason: "known", Expires: "2027-01-01", Pos: diag.Pos{File: "quayside.yaml", Line: 29, Col: 38}}}},
		Follows:  "../dev", Promotion: &settings.Promotion{Healthy: 99_500, Soak: gate.Span(24 * time.Hour), Clusters: 10, ObservedWithin: gate.Span(24 * time.Hour)},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(settings.Workspace{}, "File", "Fields", "Provides")); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for field, want := range map[string]string{
		"spec.catalogs[0].source":   "quayside.yaml:6:51",
		"spec.catalogs[1].priority": "quayside.yaml:7:5",
		"spec.reporter.enabled":     "quayside.yaml:28:23",
		"nowhere":                   "quayside.yaml",
	} {
		if got := got.At(field).String(); got != want {
			t.Errorf("position of %s: got %s, want %s", field, got, want)
		}
	}
}

// TestEnvironment checks which setting determines the name of an environment.
func TestEnvironment(t *testing.T) {
	for in, want := range map[string]string{
		"metadata: {name: prod}\nspec: {gitops: {repoURL: a, name: shop-prod}}\n":           "shop-prod",
		"metadata: {name: prod}\nspec: {gitops: {repoURL: a, path: envs/stage/rendered}}\n": "prod",
		"spec: {gitops: {repoURL: a, path: envs/stage/rendered}}\n":                         "stage",
		"spec: {output: out/tree, gitops: {repoURL: a, path: envs/stage/out/tree/}}\n":      "stage",
		"spec: {gitops: {repoURL: a}}\n":                                                    "quayside",
		"spec: {gitops: {repoURL: a, path: elsewhere}}\n":                                   "quayside",
	} {
		w, err := settings.Parse("quayside.yaml", []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"+in))
		if err != nil {
			t.Fatal(err)
		}
		if w.GitOps.Name != want {
			t.Errorf("%s: got %q, want %q", in, w.GitOps.Name, want)
		}
	}
}

// TestOpenShift checks the defaults for OpenShift, and that they do not replace values that are set.
func TestOpenShift(t *testing.T) {
	const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n"
	parse := func(spec string) *settings.Workspace {
		w, err := settings.Parse("quayside.yaml", []byte(head+spec))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := parse("  kubernetesVersion: \"1.34\"\n"); w.Certificates != certificates.CertManager || len(w.Provides.APIs) > 0 {
		t.Errorf("Kubernetes: %s, %v", w.Certificates, w.Provides)
	}
	w := parse("  openshiftVersion: \"4.20\"\n  provides: {apis: [route.openshift.io/v1, cert-manager.io/v1]}\n")
	if w.Certificates != certificates.OpenShiftServiceCA || !slices.Contains(w.Provides.Objects, "PriorityClass//openshift-user-critical") {
		t.Errorf("OpenShift: %s, %v", w.Certificates, w.Provides)
	}
	all := slices.Sorted(slices.Values(w.Provides.APIs))
	if w.Provides.APIs[1] != "cert-manager.io/v1" || len(slices.Compact(all)) != len(provided.OpenShiftAPIs())+1 || len(all) != len(w.Provides.APIs) {
		t.Errorf("APIs of OpenShift: %v", w.Provides.APIs)
	}
	if w := parse("  openshiftVersion: \"4.20\"\n  certificates: cert-manager\n"); w.Certificates != certificates.CertManager {
		t.Errorf("a set provider becomes %s", w.Certificates)
	}
}

// TestErrors checks the message and the position of each fault.
func TestErrors(t *testing.T) {
	const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n"
	var schemes string
	for _, s := range source.Schemes() {
		schemes += ", " + s.Name + ":"
	}
	schemes = strings.TrimPrefix(schemes, ", ")
	for name, c := range map[string]struct{ in, want string }{
		"no header":      {"spec: {}\n", "quayside.yaml:1:1: no apiVersion (expected quayside.dev/v1alpha1)\nquayside.yaml:1:1: no kind (expected Workspace)"},
		"header":         {"apiVersion: quayside.dev/v0\nkind: workspace\n", "quayside.yaml:1:13: apiVersion: \"quayside.dev/v0\": must be quayside.dev/v1alpha1\nquayside.yaml:2:7: kind: \"workspace\": must be Workspace"},
		"newer":          {"apiVersion: quayside.dev/v1beta1\nkind: Workspace\nspec: {new: 1}\n", `quayside.yaml:1:13: written by a newer quayside (schema quayside.dev/v1beta1; this version supports quayside.dev/v1alpha1)`},
		"other group":    {"apiVersion: example.com/v1\nkind: Workspace\n", `quayside.yaml:1:13: apiVersion: "example.com/v1": must be quayside.dev/v1alpha1`},
		"two documents":  {head + "  output: x\n---\na: b\n", `quayside.yaml:6:1: second document: a workspace is a single document`},
		"unknown field":  {head + "  catalog: []\n", `quayside.yaml:4:3: unknown field "catalog" in spec (did you mean "catalogs"?)`},
		"unknown nested": {head + "  policy:\n    failOnn: high\n", `quayside.yaml:5:5: unknown field "failOnn" in spec.policy (did you mean "failOn"?)`},
		"version number": {head + "  kubernetesVersion: 1.30\n", `quayside.yaml:4:22: spec.kubernetesVersion: expected a string, got the number 1.30 (put it in quotes)`},
		"names":          {head + "  allowNames: [ClusterRole/cluster-admin, ClusterRole/mine, cluster-admin, Role/view, \"\"]\n", "quayside.yaml:4:43: spec.allowNames[1]: \"ClusterRole/mine\" is not Kind/name of a built-in object of the cluster, such as ClusterRole/cluster-admin: only those need an entry\nquayside.yaml:4:61: spec.allowNames[2]: \"cluster-admin\" is not Kind/name of a built-in object of the cluster, such as ClusterRole/cluster-admin: only those need an entry\nquayside.yaml:4:76: spec.allowNames[3]: \"Role/view\" is not Kind/name of a built-in object of the cluster, such as ClusterRole/cluster-admin: only those need an entry\nquayside.yaml:4:87: spec.allowNames[4]: \"\" is not Kind/name of a built-in object of the cluster, such as ClusterRole/cluster-admin: only those need an entry"},
		"recreate":       {head + "  recreate: [{operator: strimzi, version: 1.0.0, kind: PersistentVolumeClaim, name: data}]\n", "quayside.yaml:4:25: spec.recreate[0].operator: \"strimzi\" is not namespace/package\nquayside.yaml:4:56: spec.recreate[0].kind: a PersistentVolumeClaim cannot be recreated: the data that depend on it would be lost"},
		"provides": {
			head + "  provides: {apis: [cert-manager.io, core/v1x], objects: [Secret/token, PriorityKlass//high, StorageClass/web/fast]}\n  clusters: [{name: a, provides: {apis: [v1]}}]\n",
			"quayside.yaml:4:21: spec.provides.apis[0]: \"cert-manager.io\" is not the group and version of an API, such as cert-manager.io/v1\n" +
				"quayside.yaml:4:38: spec.provides.apis[1]: \"core/v1x\" is not the group and version of an API, such as cert-manager.io/v1\n" +
				"quayside.yaml:4:59: spec.provides.objects[0]: \"Secret/token\" is not an object such as Secret/ns/name or StorageClass//fast\n" +
				"quayside.yaml:4:73: spec.provides.objects[1]: unknown kind \"PriorityKlass\": no operator needs it (available: ConfigMap, Namespace, PersistentVolumeClaim, PriorityClass, RuntimeClass, Secret, ServiceAccount, StorageClass) (did you mean \"PriorityClass\"?)\n" +
				"quayside.yaml:4:94: spec.provides.objects[2]: \"StorageClass/web/fast\" has a namespace, but the kind is cluster-scoped: expected StorageClass//name\n" +
				"quayside.yaml:5:42: spec.clusters[0].provides.apis[0]: \"v1\" is not the group and version of an API, such as cert-manager.io/v1",
		},
		"versions":       {head + "  kubernetesVersion: v1.30\n  openshiftVersion: \"4\"\n", "quayside.yaml:4:22: spec.kubernetesVersion: \"v1.30\" is not a version such as \"1.34\" or \"1.34.2\"\nquayside.yaml:5:21: spec.openshiftVersion: \"4\" is not a version such as \"1.34\" or \"1.34.2\""},
		"enums":          {head + "  profile: argo\n  certificates: certmanager\n  requirements: enforced\n  policy: {failOn: High}\n", "quayside.yaml:4:12: spec.profile: \"argo\": must be one of " + strings.Join(profile.Names(), ", ") + " (did you mean \"argocd\"?)\nquayside.yaml:5:17: spec.certificates: \"certmanager\": must be one of " + strings.Join(certificates.Names(), ", ") + " (did you mean \"cert-manager\"?)\nquayside.yaml:6:17: spec.requirements: \"enforced\": must be one of enforce, warn (did you mean \"enforce\"?)\nquayside.yaml:7:20: spec.policy.failOn: \"High\": must be one of off, info, low, medium, high, critical (did you mean \"high\"?)"},
		"paths":          {head + "  declarations: [/etc, ../x, rendered]\n  output: rendered/\n", "quayside.yaml:4:18: spec.declarations[0]: \"/etc\" is not a relative path with forward slashes\nquayside.yaml:4:30: spec.declarations[2]: \"rendered\" is also spec.output: declarations and rendered files need separate directories"},
		"overriding":     {head + "  declarations: [{overrides: true}, '', {path: x, override: true}, 5, {path: 6}, {path: rendered}]\n", "quayside.yaml:4:18: spec.declarations[0]: missing\nquayside.yaml:4:37: spec.declarations[1]: missing\nquayside.yaml:4:51: unknown field \"override\" in spec.declarations[2] (did you mean \"overrides\"?)\nquayside.yaml:4:68: spec.declarations[3]: expected a string or a mapping, got the number 5\nquayside.yaml:4:78: spec.declarations[4].path: expected a string, got the number 6 (put it in quotes)\nquayside.yaml:4:89: spec.declarations[5].path: \"rendered\" is also spec.output: declarations and rendered files need separate directories"},
		"output":         {head + "  output: .\n", `quayside.yaml:4:11: spec.output: the workspace itself cannot be the output: choose a directory in it`},
		"output git":     {head + "  output: .git\n", `quayside.yaml:4:11: spec.output: ".git" is inside of .git: choose another directory`},
		"output hooks":   {head + "  output: a/.GIT/hooks\n", `quayside.yaml:4:11: spec.output: "a/.GIT/hooks" is inside of .git: choose another directory`},
		"output vendor":  {head + "  output: quayside.vendor/blobs\n", `quayside.yaml:4:11: spec.output: "quayside.vendor/blobs" contains vendored images: choose another directory`},
		"global":         {head + "  globalCatalogNamespaces: [olm, Team]\n", `quayside.yaml:4:34: spec.globalCatalogNamespaces[1]: "Team" is not a valid namespace name (lower case letters, digits and -, at most 63)`},
		"output catalog": {head + "  output: cats/a\n  catalogs: [{name: a, source: 'dir:./cats/a/'}, {name: b, source: 'oci:cats/a/b:v1'}, {name: c, source: 'dir:cats'}, {name: d, source: 'dir:cats/ab'}]\n", "quayside.yaml:4:11: spec.output: \"cats/a\" overlaps with the catalog at quayside.yaml:5:106: choose another directory\nquayside.yaml:4:11: spec.output: \"cats/a\" overlaps with the catalog at quayside.yaml:5:32: choose another directory\nquayside.yaml:4:11: spec.output: \"cats/a\" overlaps with the catalog at quayside.yaml:5:68: choose another directory"},
		"catalogs":       {head + "  catalogs:\n  - {name: a, source: oic:x}\n  - {name: a, source: \"oci:\"}\n  - {namespace: A}\n", "quayside.yaml:5:23: spec.catalogs[0].source: \"oic:x\" does not start with one of " + schemes + " (did you mean \"oci\"?)\nquayside.yaml:6:5: spec.catalogs[1]: duplicate catalog \"a\": first at quayside.yaml:5:5\nquayside.yaml:6:23: spec.catalogs[1].source: \"oci:\" has no location after the colon\nquayside.yaml:7:5: spec.catalogs[2].name: missing\nquayside.yaml:7:5: spec.catalogs[2].source: missing: specify the location of the catalog, such as \"oci:catalogs/operatorhubio\"\nquayside.yaml:7:17: spec.catalogs[2].namespace: \"A\" is not a valid namespace name (lower case letters, digits and -, at most 63)"},
		"clusters":       {head + "  clusters: [{name: a}, {name: a}, {name: B, server: kube, operators: [a/b/c], config: [1]}]\n", "quayside.yaml:4:32: spec.clusters[1].name: duplicate cluster \"a\": first at quayside.yaml:4:21\nquayside.yaml:4:43: spec.clusters[2].name: \"B\" is not a Kubernetes name (lower case letters, digits, - and .)\nquayside.yaml:4:54: spec.clusters[2].server: \"kube\" is not an http or https URL\nquayside.yaml:4:72: spec.clusters[2].operators[0]: \"a/b/c\" is neither namespace/package nor a pattern with *\nquayside.yaml:4:88: spec.clusters[2].config: expected a mapping"},
		"no name":        {"apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: My shop}\nspec:\n  gitops: {repoURL: a}\n", `quayside.yaml:3:18: metadata.name: "My shop" cannot be the prefix of object names (lower case letters, digits and -, at most 63): set spec.gitops.name`},
		"no name here":   {head + "  gitops: {repoURL: a, name: Shop}\n", `quayside.yaml:4:30: spec.gitops.name: "Shop" cannot be the prefix of object names (lower case letters, digits and -, at most 63): set spec.gitops.name`},
		"same place":     {head + "  gitops: {repoURL: a, removedClusters: drop}\n  clusters:\n  - {name: a}\n  - {name: b}\n", "quayside.yaml:4:41: spec.gitops.removedClusters: \"drop\": must be one of keep, delete\nquayside.yaml:7:5: spec.clusters[1].server: clusters \"b\" and \"a\" have the same address https://kubernetes.default.svc, so each would prune the other's objects: set server of each cluster"},
		"unread values":  {head + "  gitops: {repoURL: a}\n  clusters:\n  - {name: a, values: {region: eu}}\n", `quayside.yaml:6:23: spec.clusters[0].values: has no effect without spec.gitops.inputs: set it to true, or remove the values`},
		"argo without":   {head + "  gitops: {}\n", `quayside.yaml:4:11: spec.gitops.repoURL: missing: the argocd profile needs it to render an Application`},
		"flux without":   {head + "  profile: flux\n  gitops: {sourceRef: {kind: Git}}\n", "quayside.yaml:5:23: spec.gitops.sourceRef.name: missing: the flux profile needs it to render a Kustomization\nquayside.yaml:5:30: spec.gitops.sourceRef.kind: \"Git\": must be one of GitRepository, OCIRepository, Bucket (did you mean \"GitRepository\"?)"},
		"reporter":       {head + "  reporter: {enabled: true, namespace: A_b}\n", "quayside.yaml:4:13: spec.reporter.image: missing: build the reporter's image with 'make image' and push it to your registry\nquayside.yaml:4:40: spec.reporter.namespace: \"A_b\" is not a valid namespace name (lower case letters, digits and -, at most 63)"},
		"reporter image": {head + "  reporter: {enabled: true, image: https://x/y, namespace: ''}\n", "quayside.yaml:4:36: spec.reporter.image: \"https://x/y\" is not an image reference such as registry.example.com/quayside-report@sha256:…\nquayside.yaml:4:60: spec.reporter.namespace: \"\" is not a valid namespace name (lower case letters, digits and -, at most 63)"},
		"levels": {head + "  policy:\n    clusters:\n    - {names: [\"prod-*\", \"*-1\"], failOn: hihg}\n    - {names: [c1, \"prod-*\"], failOn: low}\n    - {names: [], failOn: low}\n    - {name: c2}\n", `quayside.yaml:6:26: spec.policy.clusters[0].names[1]: "*-1": * is only allowed at the end
quayside.yaml:6:42: spec.policy.clusters[0].failOn: "hihg": must be one of off, info, low, medium, high, critical (did you mean "high"?)
quayside.yaml:7:20: spec.policy.clusters[1].names[1]: duplicate cluster "prod-*": first at quayside.yaml:6:16
quayside.yaml:8:15: spec.policy.clusters[2].names: missing: list the clusters, such as ["prod-*"]
quayside.yaml:9:7: spec.policy.clusters[3].failOn: "": must be one of off, info, low, medium, high, critical
quayside.yaml:9:7: spec.policy.clusters[3].names: missing: list the clusters, such as ["prod-*"]
quayside.yaml:9:8: unknown field "name" in spec.policy.clusters[3] (did you mean "names"?)`},
		"waivers": {head + "  policy:\n    waivers:\n    - {operator: x, expires: 2027-02-29}\n    - {rule: r, reason: ' '}\n    - {rule: '*', object: 'a*b', reason: r, expires: 2028-02-29}\n    - {rule: r, reason: r, expires: 2028-02-29}\n    - {rule: waiver-unused, clusters: ['*-1'], reason: r, expires: 2028-02-29}\n", `quayside.yaml:6:7: spec.policy.waivers[0].reason: missing: specify the reason for accepting the risk
quayside.yaml:6:7: spec.policy.waivers[0].rule: missing: specify the rule to waive
quayside.yaml:6:18: spec.policy.waivers[0].operator: "x" is not namespace/package
quayside.yaml:6:30: spec.policy.waivers[0].expires: "2027-02-29" is not a day such as 2027-01-01
quayside.yaml:7:7: spec.policy.waivers[1].expires: missing: specify the last day of the waiver, such as 2027-01-01
quayside.yaml:7:25: spec.policy.waivers[1].reason: missing: specify the reason for accepting the risk
quayside.yaml:8:14: spec.policy.waivers[2].rule: "*": * is only allowed for the rules of a family, such as rbac.*
quayside.yaml:8:27: spec.policy.waivers[2].object: "a*b": * is only allowed at the end
quayside.yaml:9:7: spec.policy.waivers[3]: duplicate waiver of r: first at quayside.yaml:7:7
quayside.yaml:10:14: spec.policy.waivers[4].rule: "waiver-unused" cannot be waived: correct or delete the waiver itself
quayside.yaml:10:40: spec.policy.waivers[4].clusters[0]: "*-1": * is only allowed at the end`},
		"trust spelt": {
			head + "  trust:\n  - {match: QUAY.io/*, keys: [k]}\n  - {match: 'quay.io:443/org/*', keys: [k]}\n",
			`quayside.yaml:6:13: spec.trust[1].match: "quay.io:443/org/*" never applies: "QUAY.io/*" at quayside.yaml:5:13 matches first`,
		},
		"trust": {
			head + "  trust:\n  - {keys: [/cosign.pub]}\n  - {match: quay.io/a, keys: [k], issuer: i}\n  - {match: quay.io/*, identity: a, identityRegexp: '('}\n  - {match: quay.io/b}\n  - {match: 'quay.io/c:v1', keys: [k]}\n  - {match: busybox, keys: [k]}\n  - {match: 'q*y.io/*', keys: [k]}\n",
			`quayside.yaml:5:5: spec.trust[0].match: missing: specify the repositories, such as quay.io/org/*
quayside.yaml:5:13: spec.trust[0].keys[0]: "/cosign.pub" is not a relative path with forward slashes
quayside.yaml:6:43: spec.trust[1].issuer: conflicts with keys: an entry can have only one of them
quayside.yaml:7:5: spec.trust[2].issuer: missing: specify the issuer of the identity
quayside.yaml:7:5: spec.trust[2].trustRoot: missing: specify a trusted_root.json; none is downloaded
quayside.yaml:7:53: spec.trust[2].identityRegexp: "(" is not a regular expression: error parsing regexp: missing closing ): ` + "`(`" + `
quayside.yaml:7:53: spec.trust[2].identityRegexp: conflicts with identity: only one of them can be set
quayside.yaml:8:5: spec.trust[3]: no signer: specify keys, or identity, issuer and trustRoot
quayside.yaml:8:13: spec.trust[3].match: "quay.io/b" never applies: "quay.io/*" at quayside.yaml:7:13 matches first
quayside.yaml:9:13: spec.trust[4].match: "quay.io/c:v1": a repository must not have a tag or digest
quayside.yaml:10:13: spec.trust[5].match: "busybox" has no registry: write it in full, such as docker.io/library/busybox, or * for all
quayside.yaml:11:13: spec.trust[6].match: "q*y.io/*": * is only allowed at the end`,
		},
		"follows itself":  {"apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: dev}\nspec: {follows: dev}\n", `quayside.yaml:4:17: spec.follows: "dev" is this environment: it cannot follow itself`},
		"follows .":       {head + "  follows: ./\n", `quayside.yaml:4:12: spec.follows: an environment cannot follow itself`},
		"follows nothing": {head + "  follows: \"\"\n", `quayside.yaml:4:12: spec.follows: must not be empty: set the upstream environment (for example 'follows: dev'), or omit the field`},
		"follows outside": {head + "  follows: /envs/dev\n", `quayside.yaml:4:12: spec.follows: "/envs/dev" is not a relative path with forward slashes`},
		"promotion":       {head + "  promotion: {healthy: 99, soak: 1w, clusters: 0, observedWithin: 0s}\n", "quayside.yaml:4:24: spec.promotion.healthy: expected a string, got the number 99 (put it in quotes)\nquayside.yaml:4:34: \"1w\" is not a time such as 24h or 90m\nquayside.yaml:4:48: spec.promotion.clusters: 0: must be at least 1\nquayside.yaml:4:67: spec.promotion.observedWithin: must be greater than 0"},
		"unsigned":        {head + "  promotion: {signed: true}\n", "quayside.yaml:4:23: spec.promotion.signed: no signer: add an entry with 'match: observations' to spec.trust"},
		"shares":          {head + "  promotion: {healthy: '99,5%'}\n", `quayside.yaml:4:24: "99,5%" is not a percentage such as 99% or 99.5%, above 0% and at most 100%`},
		"proxy and names": {head + "  proxy: {httpProxy: proxy}\n  imagePullSecrets: [A_B]\n", "quayside.yaml:4:22: spec.proxy.httpProxy: \"proxy\" is not an http or https URL\nquayside.yaml:5:22: spec.imagePullSecrets[0]: \"A_B\" is not a Kubernetes name (lower case letters, digits, - and .)"},
	} {
		_, err := settings.Parse("quayside.yaml", []byte(c.in))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec: {clusters: [{}], catalogs: [{}], gitops: {}, output: ~}\n"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		w, err := settings.Parse("f", in)
		if err != nil {
			lines := strings.Split(string(in), "\n")
			var faults diag.List
			errors.As(err, &faults)
			for _, e := range faults {
				if e.Pos.Line > len(lines) || e.Pos.Line > 0 && e.Pos.Col > len(lines[e.Pos.Line-1])+1 {
					t.Errorf("%v has a position outside of the file", e)
				}
			}
			return
		}
		if w.OutputDir() == "" || w.Profile == "" || len(w.Clusters) == 0 || w.Clusters[0].Name == "" {
			t.Errorf("incomplete: %+v", w)
		}
	})
}

// TestDays checks that waivers accept all valid days, and no others.
func TestDays(t *testing.T) {
	var src strings.Builder
	src.WriteString("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  policy:\n    waivers:\n")
	wrong := 0
	for _, year := range []int{0, 1, 1900, 2000, 2023, 2024, 9999} {
		for month := range 14 {
			for day := range 33 {
				fmt.Fprintf(&src, "    - {rule: r, reason: r, expires: \"%04d-%02d-%02d\"}\n", year, month, day)
				if is := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC); is.Year() != year || int(is.Month()) != month || is.Day() != day {
					wrong++
				}
			}
		}
	}
	for _, s := range []string{"2027-1-31", "2027-01-1", "27-01-31", "2027-01-31 ", "2027-01-31T00:00:00Z", "2027/01/31", "-027-01-31", "+2027-01-31", "02027-01-31", "2027-01-31.5", "tomorrow", "２027-01-31"} {
		fmt.Fprintf(&src, "    - {rule: r, reason: r, expires: %q}\n", s)
		wrong++
	}
	_, err := settings.Parse("quayside.yaml", []byte(src.String()))
	if err == nil || strings.Count(err.Error(), "is not a day such as 2027-01-01") != wrong {
		t.Errorf("want %d invalid days, got %v", wrong, err)
	}
}

// TestURLsWithCredentials checks that credentials in URLs are errors with positions, which do not contain them.
func TestURLsWithCredentials(t *testing.T) {
	const head = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  "
	for text, want := range map[string]string{
		`catalogs: [{name: c, source: "https://user:token@host/c"}]`:                                                       "quayside.yaml:4:32: spec.catalogs[0].source: \"https://***@host/c\" must not have a user name or a password",
		`catalogs: [{name: c, helm: "https://token@host/c"}]`:                                                              "quayside.yaml:4:30: spec.catalogs[0].source: \"helm:https://***@host/c\" must not have",
		`catalogs: [{name: c, helm: "oci://user:token@host/c"}]`:                                                           "quayside.yaml:4:30: spec.catalogs[0].source: \"helm:oci://***@host/c\" must not have",
		`catalogs: [{name: c, manifests: {git: "https://user:token@host/c"}}]`:                                             "quayside.yaml:4:35: spec.catalogs[0].source: \"manifests:git+https://***@host/c#package=c&path=.&tags=v%2A\" must not have",
		`catalogs: [{name: c, manifests: {package: c, url: "https://user:token@host/{version}.yaml", versions: [1.0.0]}}]`: "quayside.yaml:4:35: spec.catalogs[0].source: \"manifests:https://***@host/{version}.yaml#package=c&versions=1.0.0\" must not have",
		`gitops: {repoURL: "https://user:token@host/c"}`:                                                                   "quayside.yaml:4:21: spec.gitops.repoURL: must not contain credentials",
	} {
		_, err := settings.Parse("quayside.yaml", []byte(head+text))
		if got := fmt.Sprint(err); !strings.HasPrefix(got, want) || strings.Contains(got, "token") {
			t.Errorf("%s:\ngot %s\nwant %s", text, got, want)
		}
	}
	if _, err := settings.Parse("quayside.yaml", []byte(head+`gitops: {repoURL: "ssh://git@host/c"}`)); err != nil {
		t.Errorf("the user name of SSH: %v", err)
	}
}
