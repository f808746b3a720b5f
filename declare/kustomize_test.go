package declare_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/quayside/quayside/declare"
)

// files returns the files of a txtar archive as a file system.
func files(text string) fstest.MapFS {
	out := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		out[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return out
}

// catalogLayout is a repository with a base, and an overlay per channel.
const catalogLayout = `
-- operators/etcd/base/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [namespace.yaml, group.yaml, subscription.yaml]
-- operators/etcd/base/namespace.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: etcd}
-- operators/etcd/base/group.yaml --
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: etcd, namespace: etcd}
-- operators/etcd/base/subscription.yaml --
# the channel comes from the overlays
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: etcd
  namespace: etcd
spec:
  channel: none
  name: etcd
  source: hub
  sourceNamespace: olm
-- operators/etcd/overlays/alpha/kustomization.yaml --
resources: [../../base]
patches:
- path: channel.yaml
  target: {kind: Subscription, name: etcd}
-- operators/etcd/overlays/alpha/channel.yaml --
- op: replace
  path: /spec/channel
  value: alpha
-- operators/etcd/overlays/beta/kustomization.yaml --
resources: [../../base]
patches:
- patch: |-
    apiVersion: operators.coreos.com/v1alpha1
    kind: Subscription
    metadata:
      name: etcd
      namespace: etcd
    spec:
      channel: beta
`

// declared formats each declaration and each warning as a line.
func declared(set *declare.Set) string {
	var b strings.Builder
	for _, s := range set.Subscriptions {
		fmt.Fprintf(&b, "%s %s %s %s at %s, channel at %s\n", s.Key(), s.Package, s.Channels, s.Watch, s.Pos, s.At(declare.FieldChannel))
	}
	for _, g := range set.OperatorGroups {
		fmt.Fprintf(&b, "OperatorGroup %s/%s at %s\n", g.Namespace, g.Name, g.Pos)
	}
	for _, n := range set.Namespaces {
		fmt.Fprintf(&b, "Namespace %s at %s\n", n.Name, n.Pos)
	}
	for _, w := range set.Warnings {
		fmt.Fprintf(&b, "%s [%s]\n", w, w.Code)
	}
	if line := set.IgnoredSummary(); line != "" {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// TestKustomize checks the declarations of repositories with kustomizations. Each case adds files
// to catalogLayout.
func TestKustomize(t *testing.T) {
	const around = "OperatorGroup etcd/etcd at operators/etcd/base/group.yaml:1:1\nNamespace etcd at operators/etcd/base/namespace.yaml:1:1\n"
	for name, c := range map[string]struct {
		paths, more, want string
	}{
		"an overlay is named": {
			paths: "operators/etcd/overlays/alpha",
			want:  "etcd/etcd etcd [alpha] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/alpha/channel.yaml:3:10\n" + around,
		},
		"its kustomization is named": {
			paths: "operators/etcd/overlays/alpha/kustomization.yaml",
			want:  "etcd/etcd etcd [alpha] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/alpha/channel.yaml:3:10\n" + around,
		},
		"a patch in place": {
			paths: "operators/etcd/overlays/beta",
			want:  "etcd/etcd etcd [beta] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/beta/kustomization.yaml:10:16\n" + around,
		},
		"the base is named": {
			paths: "operators/etcd/base",
			want:  "etcd/etcd etcd [none] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/base/subscription.yaml:8:12\n" + around,
		},
		"two overlays are found": {
			paths: "operators",
			want:  `operators/etcd/base/subscription.yaml:2:1: subscription "etcd/etcd" is built differently by "operators/etcd/overlays/alpha", "operators/etcd/overlays/beta": list only one of them in spec.declarations`,
		},
		"two overlays are found, one of them is named": {
			paths: "operators operators/etcd/overlays/beta",
			want:  "etcd/etcd etcd [beta] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/beta/kustomization.yaml:10:16\n" + around,
		},
		"two overlays are named, and the last wins": {
			paths: "operators/etcd/overlays/beta operators/etcd/overlays/alpha",
			want:  "etcd/etcd etcd [alpha] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/alpha/channel.yaml:3:10\n" + around,
		},
		"an aggregate builds on one of them": {
			paths: "all",
			more:  "-- all/kustomization.yaml --\nresources: [../operators/etcd/overlays/alpha]\n",
			want:  "etcd/etcd etcd [alpha] [] at operators/etcd/base/subscription.yaml:2:1, channel at operators/etcd/overlays/alpha/channel.yaml:3:10\n" + around,
		},
		"an overlay replaces a declaration of an earlier path": {
			paths: "flat prod",
			more: `-- flat/kafka.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: kafka}
spec: {name: kafka, channel: old, source: hub, sourceNamespace: olm}
-- prod/kustomization.yaml --
resources: [kafka.yaml]
-- prod/kafka.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: kafka}
spec: {name: kafka, channel: new, source: hub, sourceNamespace: olm}
`,
			want: "kafka/kafka kafka [new] [] at prod/kafka.yaml:1:1, channel at prod/kafka.yaml:4:30\n",
		},
		"a file does not": {
			paths: "prod flat",
			more: `-- flat/kafka.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: kafka}
spec: {name: kafka, channel: old, source: hub, sourceNamespace: olm}
-- prod/kustomization.yaml --
resources: [kafka.yaml]
-- prod/kafka.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: kafka}
spec: {name: kafka, channel: new, source: hub, sourceNamespace: olm}
`,
			want: `flat/kafka.yaml:1:1: subscription "kafka/kafka" is declared twice, first at prod/kafka.yaml:1:1: to override it, set overrides: true on the later path of spec.declarations`,
		},
		"files next to a kustomization": {
			paths: "mixed",
			more: `-- mixed/flat.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: flat}
-- mixed/team/kustomization.yml --
resources: [listed.yaml]
configMapGenerator: [{name: settings, literals: [a=b]}]
-- mixed/team/listed.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: listed}
-- mixed/team/forgotten.yaml --
apiVersion: v1
kind: Namespace
metadata: {name: forgotten}
-- mixed/team/deep/notes.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
`,
			want: "Namespace flat at mixed/flat.yaml:1:1\nNamespace listed at mixed/team/listed.yaml:1:1\n" +
				"mixed/team/forgotten.yaml:1:1: declaration ignored: \"mixed/team/kustomization.yml\" does not list this file [not-listed]\n" +
				"1 object of other kinds was ignored: 1 ConfigMap\n",
		},
		"components, a namespace, a suffix and labels": {
			paths: "tenants",
			more: `-- base/kustomization.yaml --
resources: [subscription.yaml]
-- base/subscription.yaml --
apiVersion: quayside.dev/v1alpha1
kind: Subscription
metadata: {name: kafka, namespace: x}
spec:
  package: kafka
-- pin/kustomization.yaml --
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
- target: {kind: Subscription}
  patch: |
    - {op: add, path: /spec/channel, value: stable}
-- tenants/a/kustomization.yaml --
namespace: a
nameSuffix: -a
resources: [../../base]
components: [../../pin]
labels: [{pairs: {team: a}}]
-- tenants/b/kustomization.yaml --
namespace: b
resources: [../../base]
components: [../../pin]
`,
			want: "a/kafka-a kafka [stable] [] at base/subscription.yaml:1:1, channel at pin/kustomization.yaml:6:45\n" +
				"b/kafka kafka [stable] [] at base/subscription.yaml:1:1, channel at pin/kustomization.yaml:6:45\n",
		},
		"two build one thing in one way": {
			paths: "twice",
			more: `-- ns/kustomization.yaml --
resources: [ns.yaml]
-- ns/ns.yaml --
{apiVersion: v1, kind: Namespace, metadata: {name: shared}}
-- twice/a/kustomization.yaml --
resources: [../../ns]
-- twice/b/kustomization.yaml --
resources: [../../ns]
`,
			want: "Namespace shared at ns/ns.yaml:1:1\n",
		},
		"a List that a kustomization takes apart": {
			paths: "list",
			more: `-- list/kustomization.yaml --
resources: [all.yaml]
-- list/all.yaml --
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: one}
- apiVersion: v1
  kind: Secret
  metadata: {name: two}
`,
			want: "Namespace one at list/all.yaml:4:3\n1 object of other kinds was ignored: 1 Secret\n",
		},
		"faults": {
			paths: "wrong",
			more: `-- wrong/kustomization.yaml --
resources: [../operators/etcd/overlays/alpha]
patches:
- target: {kind: Subscription}
  patch: |-
    - op: add
      path: /spec/chanel
      value: x
    - op: replace
      path: /spec/name
      value: A_b
- path: config.yaml
-- wrong/config.yaml --
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: etcd, namespace: etcd}
spec:
  source: null
  config: {env: [{value: x}]}
`,
			want: `operators/etcd/base/subscription.yaml:8:3: spec.source: missing
wrong/config.yaml:6:18: spec.config.env[0].name: missing
wrong/kustomization.yaml:7:14: unknown field "chanel" in spec (did you mean "channel"?)
wrong/kustomization.yaml:10:14: spec.name: "A_b" is not a Kubernetes name (lower case letters, digits, - and .)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := declare.LoadFS(files(catalogLayout+c.more), declare.LoadOptions{Paths: paths(strings.Fields(c.paths)...)})
			got := fmt.Sprint(err)
			if err == nil {
				got = declared(set)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestKustomizeOutsideWorkspace builds files outside of the workspace, in the same repository, and
// checks that positions are relative to the workspace.
func TestKustomizeOutsideWorkspace(t *testing.T) {
	fsys := files(catalogLayout + `
-- envs/prod/subscriptions/kustomization.yaml --
resources: [../../../operators/etcd/overlays/alpha]
`)
	set, err := declare.LoadFS(fsys, declare.LoadOptions{Dir: "envs/prod", Paths: paths("subscriptions")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.Subscriptions[0].At(declare.FieldChannel).String(), "../../operators/etcd/overlays/alpha/channel.yaml:3:10"; got != want {
		t.Errorf("position of the channel: got %s, want %s", got, want)
	}
}

// linked is a file system with a symbolic link at one path.
type linked struct {
	fstest.MapFS
	link string
}

func (l linked) Lstat(name string) (fs.FileInfo, error) {
	if name == l.link {
		return (&fstest.MapFS{path.Base(name): {Mode: fs.ModeSymlink}}).Lstat(path.Base(name))
	}
	return l.MapFS.Lstat(name)
}

// TestKustomizeRefused checks the faults of unsupported kustomizations.
func TestKustomizeRefused(t *testing.T) {
	const below = "\n  hint: if d/a contains no declarations, list only the directories with declarations in spec.declarations"
	chain := ""
	for i := range 150 {
		chain += fmt.Sprintf("-- d/%03d/kustomization.yaml --\nresources: [../%03d]\n", i, i+1)
	}
	for name, c := range map[string]struct{ more, want string }{
		"remote":       {"-- d/x/kustomization.yaml --\nresources:\n- github.com/org/catalog//operators/etcd?ref=main\n", `d/x/kustomization.yaml:2:3: "github.com/org/catalog//operators/etcd?ref=main" is not a local file: remote resources are not fetched` + "\n  hint: at the top of the repository, run \"kustomize localize --scope . d/x localized-x\", and use \"localized-x/d/x\" instead"},
		"remote chart": {"-- d/kustomization.yaml --\nhelmCharts: [{name: x, repo: 'https://charts.example', version: 1.0.0}]\n-- d/charts/x/Chart.yaml --\nname: x\n", `d/kustomization.yaml:1:14: Helm chart "x" of https://charts.example is skipped, because it is not in the repository: its output is unknown` + "\n  hint: render the chart into the repository with 'helm template', and list the file under resources"},
		"local chart":  {"-- d/kustomization.yaml --\nhelmCharts: [{name: x}]\n-- d/charts/x/Chart.yaml --\nname: x\n", `d/kustomization.yaml:1:14: Helm chart "x" in "d/charts/x" is skipped, because kustomizations are built without Helm charts: its output is unknown` + "\n  hint: list d/charts/x in spec.declarations, with the values of the kustomization, or render the chart into the repository with 'helm template', and list the file under resources"},
		"charts":       {"-- d/kustomization.yaml --\nhelmCharts: [{name: x}]\n", `d/kustomization.yaml:1:14: Helm chart "x" is skipped, because Helm charts are not rendered: its output is unknown` + "\n  hint: render the chart into the repository with 'helm template', and list the file under resources"},
		"outside":      {"-- d/kustomization.yaml --\nresources: [../../../etc/passwd]\n", `d/kustomization.yaml:1:13: "../../../etc/passwd" is outside of the repository`},
		"file above":   {"-- d/kustomization.yaml --\nresources: [../x.yaml]\n-- x.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: x}}\n", "d/kustomization.yaml:1:13: \"../x.yaml\" resolves to x.yaml, but kustomize only reads files below d"},
		"cycle":        {"-- d/a/kustomization.yaml --\n# operators.coreos.com\nresources: [../b]\n-- d/b/kustomization.yaml --\nresources: [../a]\n", "d/b/kustomization.yaml:1:13: d/a includes itself" + below},
		"component":    {"-- d/kustomization.yaml --\nkind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n", "d/kustomization.yaml: "},
		"deep":         {"-- d/kustomization.yaml --\nresources: ['000']\n" + chain + "-- d/150/kustomization.yaml --\nresources: []\n", "deeper than 100 levels"},
		"generators":   {"-- d/kustomization.yaml --\nconfigMapGenerator:\n" + strings.Repeat("- {name: a}\n", 1001), "d/kustomization.yaml: 1001 objects exceed the limit of 1000"},
		"objects":      {"-- d/kustomization.yaml --\nresources: [a.yaml]\n-- d/a.yaml --\n" + strings.Repeat("---\n{apiVersion: v1, kind: A, metadata: {name: a}}\n", 1001), "1001 objects exceed the limit of 1000"},
		"a list":       {"-- d/kustomization.yaml --\nresources: [a.yaml]\n-- d/a.yaml --\napiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: A, metadata: {name: a}}\n", 1001), "1001 objects exceed the limit of 1000"},
		"program":      {"-- d/kustomization.yaml --\ngenerators: [g.yaml]\n-- d/g.yaml --\napiVersion: example.com/v1\nkind: Generator\nmetadata: {name: x}\n", `d/kustomization.yaml:1:14: Generator of example.com/v1 is skipped, because it runs a program: its output is unknown`},
		"template":     {"-- d/kustomization.yaml --\nresources: [a.yaml]\n-- d/a.yaml --\nkind: {{ .Values.kind }}\n", "d/a.yaml:1"},
	} {
		_, err := declare.LoadFS(files(c.more), declare.LoadOptions{Paths: paths("d")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	fsys := linked{files("-- d/kustomization.yaml --\nresources: [a.yaml]\n-- d/a.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: x}}\n"), "d/a.yaml"}
	_, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths("d")})
	if want := "d/kustomization.yaml:1:13: d/a.yaml is a symbolic link: replace it with a copy of its target"; err == nil || err.Error() != want {
		t.Errorf("a link:\ngot  %v\nwant %s", err, want)
	}
}
