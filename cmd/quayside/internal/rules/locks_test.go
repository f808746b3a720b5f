package rules

import (
	stdcmp "cmp"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// digestOf returns a digest that contains a number.
func digestOf(n int) lockfile.Digest { return lockfile.Digest(fmt.Sprintf("sha256:%064d", n)) }

// TestPromotion evaluates the rule about promotion for prod, which follows dev.
func TestPromotion(t *testing.T) {
	pin := func(pkg string, content int, by ...string) lockfile.Pin {
		return lockfile.Pin{Namespace: "ops", Package: pkg, Bundle: fmt.Sprintf("%s.v%d", pkg, content), ContentDigest: digestOf(content), RequestedBy: by}
	}
	const waiver = "  policy: {waivers: [{rule: ahead-of-upstream, object: ops/etcd, reason: hotfix, expires: 2030-01-01}]}\n"
	declares := &declare.Set{Subscriptions: []declare.Subscription{{Name: "etcd", Namespace: "ops", Package: "etcd"}}}
	only := func(names ...string) *declare.Set {
		return &declare.Set{Subscriptions: []declare.Subscription{{Name: "etcd", Namespace: "ops", Package: "etcd", Only: names}}}
	}
	for name, c := range map[string]struct {
		spec     string
		own, dev []lockfile.Pin
		declared *declare.Set // in dev
		here     *declare.Set
		past     string // changed lines of dev's lock
		shallow  bool
		want     string // the start of the message
	}{
		"ok/same":                   {own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("etcd", 1, "ops/etcd")}},
		"ok/dev had it":             {own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, past: "-  contentDigest: " + string(digestOf(1)) + "\n"},
		"ok/dev had its image":      {own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, past: "+  image: example.com/a@" + string(digestOf(1)) + "\n"},
		"ok/dev does not declare":   {own: []lockfile.Pin{pin("vault", 1)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}},
		"ok/dev has no lock yet":    {own: []lockfile.Pin{pin("etcd", 1)}, declared: declares},
		"ok/waived":                 {spec: waiver, own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, want: "ops/etcd is pinned at etcd.v1, which has never been in the upstream environment dev"},
		"ok/only here":              {own: []lockfile.Pin{pin("etcd", 3)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, here: only("prod")},
		"ok/no longer in dev":       {own: []lockfile.Pin{pin("etcd", 3)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, declared: only("prod").In("dev")},
		"error/only both":           {own: []lockfile.Pin{pin("etcd", 3)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, here: only("prod", "dev"), want: "ops/etcd is pinned at etcd.v3, which has never been in the upstream environment dev"},
		"error/ahead":               {own: []lockfile.Pin{pin("etcd", 3)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, want: "ops/etcd is pinned at etcd.v3, which has never been in the upstream environment dev"},
		"error/other content":       {own: []lockfile.Pin{pin("etcd", 3)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, past: "-  bundle: etcd.v3\n", want: "ops/etcd is pinned at etcd.v3, which has never been in the upstream environment dev"},
		"error/not installed there": {own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("vault", 2)}, declared: declares, want: "ops/etcd is pinned at etcd.v1, which has never been in the upstream environment dev"},
		"error/deleted lock":        {own: []lockfile.Pin{pin("etcd", 1)}, declared: declares, past: "-  bundle: etcd.v3\n", want: "ops/etcd is pinned at etcd.v1, which has never been in the upstream environment dev"},
		"error/shallow":             {own: []lockfile.Pin{pin("etcd", 1)}, dev: []lockfile.Pin{pin("etcd", 2, "ops/etcd")}, shallow: true, want: "cannot tell whether etcd.v1 has been in dev, the upstream environment of prod: the clone is shallow"},
	} {
		t.Run(name, func(t *testing.T) {
			dev := Other{
				Dir:      "dev",
				Settings: func() (*settings.Workspace, error) { return &settings.Workspace{}, nil },
				Declared: func() (*declare.Set, error) {
					if c.declared == nil {
						return &declare.Set{}, nil
					}
					return c.declared, nil
				},
				Lock: func() (*lockfile.File, error) {
					if c.dev == nil {
						return nil, fs.ErrNotExist
					}
					return lockfile.New(c.dev), nil
				},
			}
			s := &State{
				Dir: "prod", Settings: parseSettings(t, "  follows: dev\n"+c.spec), Lock: lockfile.New(c.own), Today: "2026-11-29",
				Declared: func() *declare.Set { return stdcmp.Or(c.here, &declare.Set{}) },
				Others:   func() ([]Other, error) { return []Other{dev}, nil },
				Past:     func(Other) (*Past, error) { return ParsePast([]byte(c.past), c.shallow), nil },
			}
			found, err := Evaluate(s, Locks)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range found {
				got += f.Msg
				if f.Waived != strings.HasPrefix(name, "ok/") || f.Severity != Error {
					t.Errorf("waived %v, severity %s", f.Waived, f.Severity)
				}
			}
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestIntroduced checks that Introduced turns errors that existed before into warnings.
func TestIntroduced(t *testing.T) {
	old, other := Finding{Rule: "a", Severity: Error, Subject: "x", Msg: "m"}, Finding{Rule: "a", Severity: Error, Subject: "y", Msg: "m"}
	got := Findings{old, other}.Introduced(Findings{old})
	if got[0].Severity != Warning || got[1].Severity != Error {
		t.Errorf("got %v", got)
	}
}

// TestVersions checks versions of clusters against a fixed day.
func TestVersions(t *testing.T) {
	for spec, want := range map[string]string{
		"  kubernetesVersion: \"1.34\"\n  openshiftVersion: \"4.20.1\"\n": "",
		"  kubernetesVersion: \"1.37.2\"\n  openshiftVersion: \"5.0\"\n":  "",
		"  kubernetesVersion: \"1.99\"\n":                                 "future-versions error quayside.yaml:5:22 spec.kubernetesVersion: Kubernetes \"1.99\" cannot exist yet\n",
		"  openshiftVersion: \"4.99\"\n":                                  "future-versions error quayside.yaml:5:21 spec.openshiftVersion: OpenShift \"4.99\" cannot exist yet\n",
		"  clusters: [{name: a, kubernetesVersion: \"2.1\"}]\n":           "future-versions error quayside.yaml:5:43 spec.clusters[0].kubernetesVersion: Kubernetes \"2.1\" cannot exist yet\n",
		"  kubernetesVersion: \"1.3.3\"\n":                                "old-versions warning quayside.yaml:5:22 spec.kubernetesVersion: Kubernetes \"1.3.3\" is older than 1.16, the first version with apiextensions.k8s.io/v1, which all CustomResourceDefinitions use (did you mean \"1.33\"?) [old-version]\n",
	} {
		s := &State{Settings: parseSettings(t, spec+"  requirements: enforce\n"), Today: "2026-11-29"}
		future, err1 := checkFutureVersions(s)
		old, err2 := checkOldVersions(s)
		for i := range future {
			future[i].Rule = "future-versions"
		}
		for i := range old {
			old[i].Rule = "old-versions"
		}
		if d := cmp.Diff(want, list(append(future, old...))); d != "" || err1 != nil || err2 != nil {
			t.Errorf("%s (-want +got): %v %v\n%s", spec, err1, err2, d)
		}
	}
}

// TestReviewShared checks which inherited waivers count as unused.
func TestReviewShared(t *testing.T) {
	base := diag.Pos{File: "../base.yaml", Line: 5, Col: 5}
	prod := Other{
		Dir: "envs/prod",
		Settings: func() (*settings.Workspace, error) {
			return &settings.Workspace{Extended: []string{"../base.yaml"}}, nil
		},
		Lock: func() (*lockfile.File, error) {
			return &lockfile.File{Pins: []lockfile.Pin{{Namespace: "rooms", Package: "bulb"}}}, nil
		},
	}
	for name, c := range map[string]struct {
		waiver diag.Waiver
		unused bool
	}{
		"of prod's operator":  {diag.Waiver{Rule: "a", Object: "rooms/bulb", Pos: base}, false},
		"of no operator":      {diag.Waiver{Rule: "a", Object: "rooms/lamp", Pos: base}, true},
		"of an object":        {diag.Waiver{Rule: "a", Object: "Deployment rooms/x", Pos: base}, false},
		"of everything":       {diag.Waiver{Rule: "a", Pos: base}, false},
		"of this environment": {diag.Waiver{Rule: "a", Object: "rooms/bulb", Pos: diag.Pos{File: "quayside.yaml", Line: 5}}, true},
	} {
		w := &settings.Workspace{File: "quayside.yaml"}
		w.Policy.Waivers = []diag.Waiver{c.waiver}
		s := &State{Dir: "envs/dev", Settings: w, Others: func() ([]Other, error) { return []Other{prod}, nil }}
		got := s.ReviewShared([]diag.Warning{{Code: "waiver-unused", Pos: c.waiver.Pos}})
		if (len(got) > 0) != c.unused {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestFreshness compares a lock with declarations.
func TestFreshness(t *testing.T) {
	locked := lockfile.Pin{Namespace: "ops", Package: "etcd", RequestedBy: []string{"ops/etcd"}, Declaration: digestOf(1)}
	for name, c := range map[string]struct {
		declared []declare.Subscription
		want     string
	}{
		"changed":  {[]declare.Subscription{{Namespace: "ops", Name: "etcd", Package: "etcd", Digest: digestOf(2)}}, "the declaration of ops/etcd has changed"},
		"added":    {[]declare.Subscription{{Namespace: "ops", Name: "vault", Package: "vault"}, {Namespace: "ops", Name: "etcd", Package: "etcd"}}, "ops/vault is not locked, the declaration of ops/etcd has changed"},
		"replaced": {[]declare.Subscription{{Namespace: "ops", Name: "vault", Package: "vault"}}, "ops/vault is not locked, ops/etcd is no longer declared"},
	} {
		s := &State{Settings: parseSettings(t, "  requirements: enforce\n"), Lock: lockfile.New([]lockfile.Pin{locked}), Declared: func() *declare.Set { return &declare.Set{Subscriptions: c.declared} }}
		found, err := Evaluate(s, Fresh)
		want := "freshness warning quayside.lock out of date with the declarations: run 'quayside resolve' (" + c.want + ") [stale-lock]\n"
		if d := cmp.Diff(want, list(found)); d != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", name, err, d)
		}
	}
}

// TestAddresses evaluates the rules about the directories and names that the GitOps tool reads.
func TestAddresses(t *testing.T) {
	parse := func(dir, spec string) *settings.Workspace {
		w, err := settings.Parse(settings.FileName, []byte("apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nmetadata: {name: "+dir+"}\nspec:\n  profile: argocd\n"+spec))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	const own, url = "envs/prod", "  gitops: {repoURL: \"https://git.example.com/ops/fleet.git\", path: "
	for name, c := range map[string]struct {
		spec, dev string
		remotes   gitrepo.Remotes
		want      string
	}{
		"own tree":           {spec: url + "envs/prod/rendered}\n"},
		"tree of dev":        {spec: url + "envs/dev/rendered}\n", want: "address error quayside.yaml:6:68 spec.gitops.path is the tree of workspace envs/dev: the clusters of this workspace would get the operators of that workspace [gitops-path]\n"},
		"no tree":            {spec: url + "envs/prd/rendered}\n", want: "address error quayside.yaml:6:68 spec.gitops.path names envs/prd/rendered, which no workspace writes: this workspace writes envs/prod/rendered [gitops-path]\n"},
		"another repository": {spec: url + "envs/prd/rendered}\n", remotes: gitrepo.Remotes{URLs: []string{"git@git.example.com:ops/source.git"}}},
		"this repository":    {spec: url + "envs/prod/rendered}\n", remotes: gitrepo.Remotes{URLs: []string{"git@git.example.com:ops/fleet.git"}, Names: map[string]bool{"main": true}}},
		"no such branch":     {spec: url + "envs/prod/rendered}\n", remotes: gitrepo.Remotes{URLs: []string{"git@git.example.com:ops/fleet.git"}, Names: map[string]bool{"master": true}}, want: "remotes warning quayside.yaml:6:11 spec.gitops.revision: no remote of this repository has a branch or tag \"main\" (available: master) [gitops-remote]\n"},
		"equal names":        {spec: "  gitops: {name: dev}\n", want: "engine-names error quayside.yaml:6:68 workspace envs/dev uses the same name prefix \"dev\" in cluster in-cluster: both workspaces would write the same objects of the GitOps tool [gitops-name]\n"},
		"one cluster":        {spec: "  clusters: [{name: a, server: \"https://a.example.com\"}]\n", dev: "  clusters: [{name: b, server: \"https://a.example.com\"}]\n", want: "one-owner error  ops/etcd is also installed by envs/dev in https://a.example.com [two-owners]\n"},
		"other operators":    {spec: "  clusters: [{name: a, server: \"https://a.example.com\", operators: [vault/*]}]\n", dev: "  clusters: [{name: b, server: \"https://a.example.com\"}]\n"},
	} {
		lock := lockfile.New([]lockfile.Pin{{Namespace: "ops", Package: "etcd"}})
		dev := Other{Dir: "envs/dev", Settings: func() (*settings.Workspace, error) {
			return parse("dev", "  gitops: {repoURL: \"https://git.example.com/ops/fleet.git\"}\n"+c.dev), nil
		}, Declared: func() (*declare.Set, error) { return &declare.Set{}, nil }, Lock: func() (*lockfile.File, error) { return lock, nil }}
		if !strings.Contains(c.spec, "repoURL") {
			c.spec = strings.Replace("  gitops: {repoURL: \"https://git.example.com/ops/fleet.git\"}\n"+c.spec, "  gitops: {repoURL: \"https://git.example.com/ops/fleet.git\"}\n  gitops: {", "  gitops: {repoURL: \"https://git.example.com/ops/fleet.git\", ", 1)
		}
		s := &State{
			Dir: own, Settings: parse("prod", c.spec), Lock: lock, InGit: func() bool { return true },
			Declared:   func() *declare.Set { return &declare.Set{} },
			Others:     func() ([]Other, error) { return []Other{dev}, nil },
			Repository: func() (*Repository, error) { return &Repository{Remotes: &c.remotes}, nil },
		}
		found, err := Evaluate(s, Addresses)
		ofLocks, locksErr := Evaluate(s, Locks)
		if d := cmp.Diff(c.want, list(append(found, ofLocks...))); d != "" || err != nil || locksErr != nil {
			t.Errorf("%s (-want +got): %v %v\n%s", name, err, locksErr, d)
		}
	}
}

// TestSharedCRDs compares the CRDs of two workspaces whose clusters have the same URL.
func TestSharedCRDs(t *testing.T) {
	const crd, one = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.io%s}\nspec: {group: %s}\n", "https://a.example.com"
	tree := func(pkg, labels, group string) *filetree.Tree {
		out := filetree.New()
		if err := out.Add("crds/"+pkg+"/customresourcedefinition-a.b.io.yaml", fmt.Appendf(nil, crd, labels, group)); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		own, dev, labels, group string
		want                    string
	}{
		"another spec":      {own: one, dev: one, group: "c.io", want: "one-crd error rendered/crds/etcd/customresourcedefinition-a.b.io.yaml the CRD a.b.io differs from the one in envs/dev/rendered/crds/vault/customresourcedefinition-a.b.io.yaml: the GitOps tool would apply both to https://a.example.com [two-owners]\n"},
		"other labels":      {own: one, dev: one, group: "b.io", labels: ", labels: {c: d}"},
		"another cluster":   {own: one, dev: "https://b.example.com", group: "c.io"},
		"excluded operator": {own: one, dev: one + ", operators: [ops/none]", group: "c.io"},
	} {
		s := &State{
			Dir: "envs/prod", Settings: parseSettings(t, "  clusters: [{name: p, server: \""+c.own+"\"}]\n"), InGit: func() bool { return true },
			Lock:       lockfile.New([]lockfile.Pin{{Namespace: "ops", Package: "etcd"}}),
			Rendered:   &render.Result{Tree: tree("etcd", "", "b.io")},
			Repository: func() (*Repository, error) { return nil, nil },
			Others: func() ([]Other, error) {
				return []Other{{
					Dir: "envs/dev",
					Settings: func() (*settings.Workspace, error) {
						return parseSettings(t, "  clusters: [{name: d, server: "+strings.Replace(c.dev, one, "\""+one+"\"", 1)+"}]\n"), nil
					},
					Lock: func() (*lockfile.File, error) {
						return lockfile.New([]lockfile.Pin{{Namespace: "ops", Package: "vault"}}), nil
					},
					Tree: func() (*filetree.Tree, error) { return tree("vault", c.labels, c.group), nil },
				}}, nil
			},
		}
		found, err := Evaluate(s, Addresses)
		if d := cmp.Diff(c.want, list(found)); d != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", name, err, d)
		}
	}
}

// TestMeantOverlay checks the directory that is suggested for a misspelled one.
func TestMeantOverlay(t *testing.T) {
	s := &State{
		Settings: parseSettings(t, "  clusters: [{name: east}, {name: west}]\n"),
		Lock:     lockfile.New([]lockfile.Pin{{Namespace: "lamps", Package: "lamp"}}),
		Files:    fstest.MapFS{"overlay/east/a.yaml": {}, "overlays/east/b.yaml": {}, "overlays/c.txt": {}, "charts/d.yaml": {}},
	}
	for dir, want := range map[string]string{
		"overlays/east/lamps-lamp": "overlays/east/lamps.lamp",
		"overlays/east/lamp":       "overlays/east/lamps.lamp",
		"overlays/east/resource":   "overlays/east/resources",
		"overlays/est/lamps.lamp":  "overlays/east/lamps.lamp",
		"overlay/east":             "overlays/east",
		"overlays/east":            "",
		"overlays/east/vault.v":    "",
		"overlays/bases/lamp":      "",
	} {
		if got := s.meantOverlay(dir); got != want {
			t.Errorf("%s: got %q, want %q", dir, got, want)
		}
	}
	files, err := s.overlayCandidates()
	if d := cmp.Diff([]string{"overlays/east/b.yaml", "overlay/east/a.yaml"}, files); d != "" || err != nil {
		t.Errorf("(-want +got): %v\n%s", err, d)
	}
}
