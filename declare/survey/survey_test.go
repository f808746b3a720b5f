package survey_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/quayside/quayside/declare/survey"
)

func newSurvey(t interface{ Fatal(...any) }, files fs.FS) *survey.Survey {
	s, err := survey.New(files, func(_ fs.FS, dir string) bool { return dir == "rendered" }, func(url string) bool { return strings.Contains(url, "other") }, nil, survey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func filesOf(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func request(pkg string) string {
	return fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: ops}\nspec: {name: %[1]s, source: c, sourceNamespace: olm}\n", pkg)
}

const (
	argo       = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: %s}\nspec: {source: {repoURL: %q, path: %q, directory: {recurse: %t}}}\n"
	fluxRoot   = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: all, namespace: flux-system}\nspec: {interval: 1h, sourceRef: {kind: GitRepository, name: fleet}}\n"
	fluxSource = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: https://git.example.com/acme/fleet, ignore: third}\n"
	fluxK      = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s}\nspec: {path: %q, sourceRef: {kind: GitRepository, name: fleet}}\n"
)

func all(survey.Declaration) bool { return true }

// TestSurvey finds the declarations that a GitOps tool applies, and the directories that no workspace
// reads.
func TestSurvey(t *testing.T) {
	own := "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: x, namespace: ops}\nspec: {package: own}\n"
	extension := "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\nmetadata: {name: x}\nspec: {namespace: ops, source: {sourceType: Catalog, catalog: {packageName: ext}}}\n"
	for name, c := range map[string]struct {
		files           map[string]string
		declared        []string
		applied, unread []string
	}{
		"not applied": {
			files: map[string]string{"subs/a.yaml": request("a")}, unread: []string{"subs"},
		},
		"Application": {
			files:    map[string]string{"subs/a.yaml": request("a"), "subs/deep/b.yaml": request("b"), "app.yaml": fmt.Sprintf(argo, "x", "", "subs", false)},
			declared: []string{"subs"}, applied: []string{`a by Application "x" declared`},
		},
		"Application with subdirectories": {
			files:   map[string]string{"subs/a.yaml": request("a"), "subs/deep/b.yaml": request("b"), "app.yaml": fmt.Sprintf(argo, "x", "", "/subs/", true)},
			applied: []string{`a by Application "x"`, `b by Application "x"`}, unread: []string{"subs"},
		},
		"Application that a kustomization changes": {
			files: map[string]string{
				"subs/a.yaml": request("a"), "apps/kustomization.yaml": "resources: [app.yaml]\n", "apps/app.yaml": fmt.Sprintf(argo, "x", "", "nothing", false),
				"prod/kustomization.yaml": "resources: [../apps]\npatches: [{target: {kind: Application}, patch: '- {op: replace, path: /spec/source/path, value: subs}'}]\n",
			},
			applied: []string{`a by Application "x"`}, unread: []string{"subs"},
		},
		"another repository": {
			files:  map[string]string{"subs/a.yaml": request("a"), "app.yaml": fmt.Sprintf(argo, "x", "https://git.example.com/other", "subs", false)},
			unread: []string{"subs"},
		},
		"ApplicationSet": {
			files: map[string]string{
				"apps/one/a.yaml": request("a"), "set.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{git: {directories: [{path: apps/*}]}}]\n  template: {spec: {source: {path: '{{path}}'}}}\n",
			},
			declared: []string{"apps"}, applied: []string{`a by ApplicationSet "s" declared`},
		},
		"Flux, with ignored files": {
			files: map[string]string{
				"subs/a.yaml": request("a"), "other/b.yaml": extension, "other/c.yaml": own, "third/d.yaml": request("d"), "flux.yaml": fluxRoot + fluxSource,
				".sourceignore": "/subs/\n",
			},
			declared: []string{"subs"}, applied: []string{`ext by Kustomization "all"`, `own by Kustomization "all"`}, unread: []string{"other", "third"},
		},
		"Flux, only to be read": {
			files:    map[string]string{"subs/a.yaml": request("a"), "k.yaml": fmt.Sprintf(fluxK, "x", "./subs")},
			declared: []string{"k.yaml", "subs"}, applied: []string{`a by Kustomization "x" declared`},
		},
		"Flux, only to be read, and suspended": {
			files:    map[string]string{"subs/a.yaml": request("a"), "k.yaml": strings.Replace(fmt.Sprintf(fluxK, "x", "./subs"), "spec: {", "spec: {suspend: true, ", 1)},
			declared: []string{"k.yaml", "subs"},
		},
		"Flux, with another source": {
			files: map[string]string{
				"subs/a.yaml": request("a"), "flux.yaml": strings.Replace(fluxRoot+fluxSource, "acme/fleet", "acme/other", 1),
				"oci.yaml": strings.Replace(fluxRoot, "GitRepository", "OCIRepository", 1), "unknown.yaml": strings.Replace(fluxRoot, "name: fleet", "name: unknown", 1),
			},
			declared: []string{"subs"},
		},
		"Application with patterns": {
			files: map[string]string{
				"subs/a.yaml": request("a"), "subs/b.yaml": request("b"), "subs/c/c.yaml": request("c"),
				"x.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {path: subs, directory: {recurse: true, include: '{a,c/*}.yaml', exclude: 'c/*'}}}\n",
			},
			declared: []string{"subs"}, applied: []string{`a by Application "x" declared`},
		},
		"ApplicationSet with exclusions, and of another repository": {
			files: map[string]string{
				"apps/one/a.yaml": request("a"), "apps/two/b.yaml": request("b"),
				"x.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  generators: [{git: {directories: [{path: apps/*}, {path: apps/two, exclude: true}]}}]\n  template: {spec: {source: {path: '{{path}}'}}}\n",
				"y.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: o}\nspec:\n  generators: [{git: {repoURL: https://git.example.com/acme/other, directories: [{path: apps/*}]}}]\n  template: {spec: {source: {path: '{{path}}'}}}\n",
			},
			declared: []string{"apps"}, applied: []string{`a by ApplicationSet "s" declared`},
		},
		"a Helm chart": {
			files:    map[string]string{"chart/Chart.yaml": "name: x\n", "chart/a.yaml": request("a"), "x.yaml": fmt.Sprintf(argo, "x", "", "chart", false)},
			declared: []string{"chart"},
		},
		"nested kustomization": {
			files: map[string]string{
				"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": request("a"), "lab/kustomization.yaml": "resources: [../base]\n",
				"prod/kustomization.yaml": "resources: [../base]\n",
			},
			declared: []string{"prod"}, applied: []string{`a by kustomization "lab" declared`},
		},
		"patched out": {
			files: map[string]string{
				"base/kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "base/a.yaml": request("a"), "base/b.yaml": request("b"),
				"lab/kustomization.yaml": "resources: [../base]\npatches: [{patch: \"apiVersion: operators.coreos.com/v1alpha1\\nkind: Subscription\\nmetadata: {name: a, namespace: ops}\\n$patch: delete\\n\"}]\n",
			},
			declared: []string{"base"}, applied: []string{`b by kustomization "lab" declared`},
		},
		"lists, templates, the tree and hidden files": {
			files: map[string]string{
				"list.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(request("a")), "\n", "\n  ") + "\n",
				"t/x.yaml":  "{{ if }}\n" + request("t"), "rendered/app.yaml": fmt.Sprintf(argo, "r", "", ".", true), ".hidden/s.yaml": request("h"),
				"ignored/s.yaml": request("i"), ".gitignore": "ignored\n", "root.yaml": fmt.Sprintf(argo, "top", "", ".", false),
			},
			applied: []string{`a by Application "top"`}, unread: []string{"."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurvey(t, filesOf(c.files))
			var got []string
			for _, a := range s.Applications(c.declared, nil, all) {
				text := a.Declaration.Package + " by " + a.By
				if a.Declared {
					text += " declared"
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if d := cmp.Diff(c.applied, got); d != "" {
				t.Errorf("applied: -want +got\n%s", d)
			}
			if d := cmp.Diff(c.unread, survey.Dirs(s.Unread(c.declared))); d != "" {
				t.Errorf("unread: -want +got\n%s", d)
			}
		})
	}
}

// TestPolicies finds the declarations that policies of Open Cluster Management apply.
func TestPolicies(t *testing.T) {
	policy := func(fields, object string) string {
		return "apiVersion: policy.open-cluster-management.io/v1\nkind: Policy\nmetadata: {name: p}\nspec:\n  " + fields + "\n  policy-templates:\n  - objectDefinition:\n      " + strings.ReplaceAll(strings.TrimSpace(object), "\n", "\n      ") + "\n"
	}
	config := "apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\nmetadata: {name: c}\nspec:\n  object-templates:\n  - complianceType: musthave\n    objectDefinition:\n      " + strings.ReplaceAll(strings.TrimSpace(request("a")), "\n", "\n      ")
	operator := "apiVersion: policy.open-cluster-management.io/v1beta1\nkind: OperatorPolicy\nmetadata: {name: o}\nspec: {remediationAction: enforce, subscription: {name: %s, namespace: ops}}\n"
	raw := "apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\nmetadata: {name: c}\nspec:\n  object-templates-raw: |\n    - objectDefinition:\n        " + strings.ReplaceAll(strings.TrimSpace(request("a")), "\n", "\n        ")
	generator := func(fields string) string {
		return "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\npolicies:\n- name: p\n  " + fields + "\n  manifests: [{path: ../ops/a.yaml}]\n"
	}
	inline := "generators:\n- |-\n  " + strings.ReplaceAll(generator("remediationAction: enforce"), "\n", "\n  ")
	for name, c := range map[string]struct {
		files    map[string]string
		declared []string
		want     []string
	}{
		"a Subscription":               {files: map[string]string{"p.yaml": policy("remediationAction: enforce", config)}, want: []string{`p.yaml:1:1: Policy "p" applies a`}},
		"an OperatorPolicy":            {files: map[string]string{"p.yaml": policy("disabled: false", fmt.Sprintf(operator, "b"))}, want: []string{`p.yaml:1:1: Policy "p" applies b`}},
		"mustnothave":                  {files: map[string]string{"p.yaml": policy("remediationAction: enforce", strings.Replace(config, "musthave", "mustnothave", 1))}},
		"inform":                       {files: map[string]string{"p.yaml": policy("remediationAction: inform", fmt.Sprintf(operator, "b"))}},
		"disabled":                     {files: map[string]string{"p.yaml": policy("disabled: true", fmt.Sprintf(operator, "b"))}},
		"inform, by an Application":    {files: map[string]string{"ps/p.yaml": policy("remediationAction: inform", config), "app.yaml": fmt.Sprintf(argo, "x", "", "ps", false)}},
		"enforced, by an Application":  {files: map[string]string{"ps/p.yaml": policy("remediationAction: enforce", config), "app.yaml": fmt.Sprintf(argo, "x", "", "ps", false)}, want: []string{`app.yaml:4:36: Application "x" applies a`}},
		"a template":                   {files: map[string]string{"p.yaml": policy("remediationAction: enforce", fmt.Sprintf(operator, "'{{hub x hub}}'"))}, want: []string{`p.yaml:1:1: Policy "p" applies {{hub x hub}}`, `p.yaml:1:1: cannot tell: Policy "p": templates are not evaluated offline`}},
		"text":                         {files: map[string]string{"p.yaml": policy("remediationAction: enforce", raw)}, want: []string{`p.yaml:1:1: cannot tell: Policy "p": Subscription is text in ConfigurationPolicy "c"`}},
		"a generator":                  {files: map[string]string{"ops/a.yaml": request("a"), "ps/kustomization.yaml": "generators: [g.yaml]\n", "ps/g.yaml": generator("remediationAction: enforce")}, declared: []string{"ps"}, want: []string{`ps/g.yaml:4:3: Policy "p" applies a`}},
		"a generator, inform":          {files: map[string]string{"ops/a.yaml": request("a"), "ps/kustomization.yaml": "generators: [g.yaml]\n", "ps/g.yaml": generator("remediationAction: inform")}, declared: []string{"ps"}},
		"a generator in kustomization": {files: map[string]string{"ops/a.yaml": request("a"), "ps/kustomization.yaml": inline}, declared: []string{"ps"}, want: []string{`ps/kustomization.yaml:2:3: Policy "p" applies a`}},
		"a chart":                      {files: map[string]string{"chart/Chart.yaml": "name: x\n", "chart/templates/a.yaml": request("a"), "x.yaml": fmt.Sprintf(argo, "x", "", "chart", false)}, want: []string{`x.yaml:1:1: cannot tell: Application "x": the Helm chart "chart" cannot be rendered: its tool renders no charts`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSurvey(t, filesOf(c.files))
			var got []string
			for _, a := range s.Applications(c.declared, nil, all) {
				got = append(got, fmt.Sprintf("%s: %s applies %s", a.Pos, a.By, a.Declaration.Package))
			}
			for _, e := range s.Entries {
				if e.CannotTell() != "" {
					got = append(got, fmt.Sprintf("%s: cannot tell: %s: %s", e.Pos, e.By, e.CannotTell()))
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// TestSurveyProperty surveys random repositories. The packages that it reports as applied must equal the
// packages in the output of kustomize and in the directories without a kustomization.
func TestSurveyProperty(t *testing.T) {
	dirs := []string{"a", "a/b", "a/b/c", "d", "d/e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		files, dir := map[string]string{}, rapid.SampledFrom(dirs)
		for i := range rapid.IntRange(1, 5).Draw(t, "requests") {
			files[path.Join(dir.Draw(t, "dir"), fmt.Sprintf("s%d.yaml", i))] = request(fmt.Sprintf("p%d", i))
		}
		for _, at := range rapid.SliceOfNDistinct(dir, 0, 3, rapid.ID).Draw(t, "kustomizations") {
			var list []string
			for _, name := range slices.Sorted(maps.Keys(files)) {
				if path.Base(name) == "kustomization.yaml" && rapid.Bool().Draw(t, name) { // only those before: no cycles
					list = append(list, relative(at, path.Dir(name)))
				} else if path.Dir(name) == at && rapid.Bool().Draw(t, name) {
					list = append(list, path.Base(name))
				}
			}
			files[at+"/kustomization.yaml"] = "resources: [" + strings.Join(list, ", ") + "]\n"
		}
		applied := map[string]string{}
		for i, at := range rapid.SliceOfNDistinct(dir, 1, 2, rapid.ID).Draw(t, "appliers") {
			recurse, name := rapid.Bool().Draw(t, "recurse"), fmt.Sprintf("apps/x%d.yaml", i)
			text := fmt.Sprintf(argo, "x", "", at, recurse)
			if recurse {
				text = fmt.Sprintf(fluxK, "x", "./"+at)
			}
			applied[name] = text
			for pkg := range applies(t, files, at, recurse) {
				applied["want "+pkg] = ""
			}
		}
		want := map[string]bool{}
		for name, text := range applied {
			if pkg, is := strings.CutPrefix(name, "want "); is {
				want[pkg] = true
			} else {
				files[name] = text
			}
		}
		got := map[string]bool{}
		for _, a := range newSurvey(t, filesOf(files)).Applications(dirs, nil, all) { // all kustomizations are inputs
			got[a.Declaration.Package] = true
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got\n%s\n%v", d, files)
		}
	})
}

// applies returns the packages that a tool gets from a directory. If there is a kustomization, the tool builds
// it. Otherwise it reads the files and, if recurse is set, the subdirectories.
func applies(t *rapid.T, files map[string]string, dir string, recurse bool) map[string]bool {
	out := map[string]bool{}
	if _, is := files[dir+"/kustomization.yaml"]; is {
		disk := filesys.MakeFsInMemory()
		for name, text := range files {
			if err := disk.WriteFile("/"+name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/"+dir)
		if err != nil {
			for _, invalid := range []string{"already registered id", "kustomization.yaml is empty", "cycle detected"} {
				if strings.Contains(err.Error(), invalid) {
					t.Skip(invalid)
				}
			}
			t.Fatal(err)
		}
		for _, o := range built.Resources() {
			out[o.GetName()] = true
		}
		return out
	}
	subdirs := map[string]bool{}
	for name, text := range files {
		rel, below := strings.CutPrefix(name, dir+"/")
		if first, _, deep := strings.Cut(rel, "/"); below && deep {
			subdirs[first] = true
		} else if below {
			out[packageIn(text)] = true
		}
	}
	for sub := range subdirs {
		if recurse {
			maps.Copy(out, applies(t, files, path.Join(dir, sub), true))
		}
	}
	return out
}

func packageIn(request string) string {
	_, rest, _ := strings.Cut(request, "spec: {name: ")
	pkg, _, _ := strings.Cut(rest, ",")
	return pkg
}

func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")+1) + to
}

// policyOf returns a Policy that installs an operator.
func policyOf(name, pkg string) string {
	return fmt.Sprintf("apiVersion: policy.open-cluster-management.io/v1\nkind: Policy\nmetadata: {name: %s, namespace: policies}\nspec:\n  remediationAction: enforce\n  policy-templates:\n  - objectDefinition:\n      apiVersion: policy.open-cluster-management.io/v1beta1\n      kind: OperatorPolicy\n      metadata: {name: o}\n      spec: {subscription: {name: %s, namespace: ops}}\n", name, pkg)
}

// bindingOf returns a PlacementBinding for a Policy, as a YAML document that can be appended to others.
func bindingOf(policy, placement string) string {
	return fmt.Sprintf("---\napiVersion: policy.open-cluster-management.io/v1\nkind: PlacementBinding\nmetadata: {name: %s, namespace: policies}\nplacementRef: {apiGroup: cluster.open-cluster-management.io, kind: Placement, name: %s}\nsubjects: [{apiGroup: policy.open-cluster-management.io, kind: Policy, name: %s}]\n", policy, placement, policy)
}

// TestPlacements checks which placements the survey names for the clusters of policies.
func TestPlacements(t *testing.T) {
	set := "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicySet\nmetadata: {name: s, namespace: policies}\nspec: {policies: [p]}\n---\n"
	generator := "apiVersion: policy.open-cluster-management.io/v1\nkind: PolicyGenerator\npolicyDefaults: {placement: {placementPath: placement.yaml}}\npolicies: [{name: p, remediationAction: enforce, manifests: [{path: ../ops/a.yaml}]%s}]\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no binding":                     {map[string]string{"p.yaml": policyOf("p", "a")}, `Policy "p" (p.yaml:1:1)`},
		"a binding":                      {map[string]string{"p.yaml": policyOf("p", "a") + bindingOf("p", "x")}, `Policy "p" (p.yaml:1:1) for the clusters of Placement "x"`},
		"two bindings":                   {map[string]string{"p.yaml": policyOf("p", "a"), "b.yaml": bindingOf("p", "w") + bindingOf("p", "x") + bindingOf("p", "x")}, `Policy "p" (p.yaml:1:1) for the clusters of Placement "w", Placement "x"`},
		"a binding of another policy":    {map[string]string{"p.yaml": policyOf("p", "a") + bindingOf("q", "x")}, `Policy "p" (p.yaml:1:1)`},
		"a binding of another namespace": {map[string]string{"p.yaml": policyOf("p", "a") + strings.Replace(bindingOf("p", "x"), "policies}", "other}", 1)}, `Policy "p" (p.yaml:1:1)`},
		"a PolicySet":                    {map[string]string{"p.yaml": policyOf("p", "a"), "s.yaml": set + strings.NewReplacer("kind: Policy, name: p", "kind: PolicySet, name: s").Replace(bindingOf("p", "x"))}, `Policy "p" (p.yaml:1:1) for the clusters of Placement "x"`},
		"a generator":                    {map[string]string{"ops/a.yaml": request("a"), "ps/kustomization.yaml": "generators: [g.yaml]\n", "ps/g.yaml": fmt.Sprintf(generator, ""), "ps/placement.yaml": "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: z}\n"}, `Policy "p" (ps/g.yaml:4:12) for the clusters of Placement "z"`},
		"a policy of a generator":        {map[string]string{"ops/a.yaml": request("a"), "ps/kustomization.yaml": "generators: [g.yaml]\n", "ps/g.yaml": fmt.Sprintf(generator, ", placement: {placementRuleName: own}")}, `Policy "p" (ps/g.yaml:4:12) for the clusters of PlacementRule "own"`},
	} {
		s := newSurvey(t, filesOf(c.files))
		policies := s.Policies(s.Declarations[0])
		if len(policies) != 1 || policies[0].String() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, policies, c.want)
		}
	}
}
