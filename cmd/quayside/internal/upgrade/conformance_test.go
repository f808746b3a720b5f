package upgrade_test

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// input returns the path of a file in the directory that a variable names. If it is not set, input skips the test.
func input(t *testing.T, variable, name string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is unset: no %s", variable, name)
	}
	return filepath.Join(dir, name)
}

// eachFile calls f for each file of a compressed archive.
func eachFile(t *testing.T, archive string, f func(name string, data func() []byte)) {
	t.Helper()
	file, err := os.Open(archive)
	check(t, err)
	defer file.Close()
	z, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(1<<28))
	check(t, err)
	defer z.Close()
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check(t, err)
		f(h.Name, func() []byte {
			data, err := io.ReadAll(files)
			check(t, err)
			return data
		})
	}
}

// verdict is the expected result of 'quayside upgrade --check' for a bundle.
type verdict struct {
	Bundle, Kubernetes, OpenShift string
	Rules                         []string
	Exit                          int
}

func (v verdict) target() upgrade.Platform {
	return upgrade.Platform{Kubernetes: v.Kubernetes, OpenShift: v.OpenShift}
}

func readVerdicts(t *testing.T) []verdict {
	t.Helper()
	file, err := os.Open(input(t, "QUAYSIDE_CONFORMANCE", "check-upgrade/verdicts.jsonl"))
	check(t, err)
	defer file.Close()
	var out []verdict
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v verdict
		check(t, json.Unmarshal(lines.Bytes(), &v))
		out = append(out, v)
	}
	return out
}

// compareVerdict compares the blocking rules and the verdict with the expected ones.
func compareVerdict(t *testing.T, want verdict, got upgrade.Judgement) {
	t.Helper()
	var rules []string
	for _, p := range got.Problems {
		if p.Blocks {
			rules = append(rules, p.Rule)
		}
	}
	slices.Sort(rules)
	if d := cmp.Diff(want.Rules, slices.Compact(rules), cmpopts.EquateEmpty()); d != "" || got.Supported != (want.Exit == 0) {
		t.Errorf("%s on %s: supported: %v, want exit code %d; rules: -want +got\n%s", want.Bundle, want.target(), got.Supported, want.Exit, d)
	}
}

// TestVerdicts checks the bundles of a catalog in QUAYSIDE_CORPUS, and compares the verdicts with those in
// QUAYSIDE_CONFORMANCE. The catalog has the requirements of bundles, but not their objects.
func TestVerdicts(t *testing.T) {
	verdicts := readVerdicts(t)
	wanted := map[string]bool{}
	for _, v := range verdicts {
		pkg, _, _ := strings.Cut(v.Bundle, "/")
		wanted["slim/"+pkg+"/catalog.json"] = true
	}
	all := catalog.Content{ID: catalog.ID{Namespace: "olm", Name: "full"}, Source: "dir:full"}
	eachFile(t, input(t, "QUAYSIDE_CORPUS", "catalogs/full-slim.tar.zst"), func(name string, data func() []byte) {
		if wanted[name] {
			content, err := fbc.Decode(name, strings.NewReader(string(data())))
			check(t, err)
			all.Packages = append(all.Packages, content.Packages...)
		}
	})
	cat, err := catalog.New(all)
	check(t, err)
	x, err := catalog.NewIndex(cat)
	check(t, err)
	for _, v := range verdicts {
		name, version, _ := strings.Cut(v.Bundle, "/")
		pkg, ok := cat.Package(name)
		if !ok {
			t.Errorf("%s: no such package in the catalog", v.Bundle)
			continue
		}
		bundles := pkg.Bundles()
		i := slices.IndexFunc(bundles, func(b *catalog.Bundle) bool { return b.Version().String() == version })
		if i < 0 {
			t.Errorf("%s: no such version in the catalog", v.Bundle)
			continue
		}
		pin := lockfile.Pin{Namespace: "ops", Package: name, Version: version, Bundle: bundles[i].Name(), Image: bundles[i].Image(), Catalog: lockfile.Catalog{ID: cat.ID()}}
		lock := lockfile.New([]lockfile.Pin{pin})
		misfits, unknown := resolve.FindIncompatible(x, lock, v.Kubernetes, v.OpenShift)
		if len(unknown) > 0 {
			t.Errorf("%s: unknown requirements", v.Bundle)
		}
		compareVerdict(t, v, upgrade.JudgePlatform(lock.Pins, func(p lockfile.Pin) *catalog.SupportedVersion { return resolve.LifecycleOf(x, p) }, v.target(), misfits, nil))
	}
}

// writeWorkspace writes a workspace whose catalog is a directory of bundles, with a Subscription to each
// package, and resolves it.
func writeWorkspace(t *testing.T, bundles, kubernetes string, pkgs ...string) (dir, cache string) {
	t.Helper()
	dir, cache = t.TempDir(), t.TempDir()
	outside, err := filepath.Rel(dir, bundles)
	check(t, err)
	writeFiles(t, dir, "quayside.yaml", fmt.Sprintf(`apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: c, namespace: olm, source: "bundles:%s"}]
  kubernetesVersion: "%s"
  requirements: warn
  allowOverlap: true
`, filepath.ToSlash(outside), kubernetes))
	for _, pkg := range pkgs {
		writeFiles(t, dir, "subscriptions/"+pkg+".yaml", fmt.Sprintf("apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {package: %[1]s}\n", pkg))
	}
	resolveProject(t, dir, cache, nil)
	return dir, cache
}

// TestVerdictsOfContent is like TestVerdicts, for bundles in QUAYSIDE_CORPUS whose objects are also known.
func TestVerdictsOfContent(t *testing.T) {
	seen := 0
	for _, v := range readVerdicts(t) {
		name, version, _ := strings.Cut(v.Bundle, "/")
		from := input(t, "QUAYSIDE_CORPUS", filepath.Join("bundles", name, version))
		if _, err := os.Stat(from); err != nil {
			continue
		}
		bundles := t.TempDir()
		check(t, os.CopyFS(filepath.Join(bundles, name, version), os.DirFS(from)))
		dir, cache := writeWorkspace(t, bundles, "1.30", name)
		report, err := upgrade.CheckPlatform(context.Background(), openProject(t, cache, dir), v.target(), nil)
		check(t, err)
		compareVerdict(t, v, report.Judgement)
		seen++
	}
	if seen < 6 {
		t.Errorf("only %d verdicts are about bundles of the corpus", seen)
	}
}

// TestRemovedAPIs checks real operators with a ClusterRole of rbac.authorization.k8s.io/v1beta1, an API version
// that Kubernetes 1.22 removed. The ClusterRole must be reported, and render must convert it.
func TestRemovedAPIs(t *testing.T) {
	bundles := t.TempDir()
	found := map[string]string{} // the version by package
	files := map[string][]byte{}
	eachFile(t, input(t, "QUAYSIDE_CORPUS", "v1beta1.tar.zst"), func(name string, data func() []byte) {
		pkg, rest, _ := strings.Cut(name, "/")
		version, _, _ := strings.Cut(rest, "/")
		if strings.HasSuffix(name, ".yaml") {
			files[name] = data()
			if strings.Contains(string(files[name]), "\nkind: ClusterRole\n") && strings.Contains(string(files[name]), "rbac.authorization.k8s.io/v1beta1") {
				found[pkg] = max(found[pkg], version)
			}
		}
	})
	var pkgs []string
	for pkg, version := range found {
		pkgs = append(pkgs, pkg)
		for name, data := range files {
			if strings.HasPrefix(name, pkg+"/"+version+"/") {
				writeFiles(t, bundles, name, string(data))
			}
		}
	}
	dir, cache := writeWorkspace(t, bundles, "1.21", pkgs...)
	report, err := upgrade.CheckPlatform(context.Background(), openProject(t, cache, dir), upgrade.Platform{Kubernetes: "1.22"}, nil)
	check(t, err)
	told := map[string]bool{}
	for _, p := range report.Problems {
		if p.Rule == "api.removed" && p.Object.Kind == "ClusterRole" {
			if p.Blocks || !strings.Contains(p.Message, "render converts it once kubernetesVersion in quayside.yaml is 1.22") {
				t.Errorf("%s: blocks: %v: %s", p.Operator, p.Blocks, p.Message)
			}
			told[p.Operator] = true
		}
	}
	for _, pkg := range pkgs {
		if !told[pkg+"/"+pkg] {
			t.Errorf("%s: its ClusterRole is not reported: %+v", pkg, report.Problems)
		}
	}
	if len(pkgs) < 5 {
		t.Errorf("only %d packages: %v", len(pkgs), pkgs)
	}
}

// drop is a real upgrade that drops versions of a CRD.
type drop struct {
	pkg, from, to, crd string
	dropped, versions  []string // no longer in the CRD, in the CRD afterwards
	storage            []string // afterwards
}

func (d *drop) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&d.pkg, &d.from, &d.to, &d.crd, &d.dropped, &d.versions, &d.storage})
}

// definition returns a CRD whose last version is the storage version.
func definition(name string, versions []string) string {
	plural, group, _ := strings.Cut(name, ".")
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  names: {plural: %[3]s, singular: %[3]s1, kind: K%[3]s, listKind: K%[3]sList}
  scope: Namespaced
  versions:
`, name, group, plural)
	for i, v := range versions {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object}}}\n", v, i == len(versions)-1)
	}
	return text
}

// TestStoredDrops checks that real upgrades, listed in QUAYSIDE_CONFORMANCE, are held back: they drop versions
// in which objects may be stored. In one case, the old CRD already has the new versions, so that objects can be
// migrated. In the other case, it does not.
func TestStoredDrops(t *testing.T) {
	data, err := os.ReadFile(input(t, "QUAYSIDE_CONFORMANCE", "stored/drops.json"))
	check(t, err)
	var drops []drop
	check(t, json.Unmarshal(data, &drops))
	if len(drops) == 0 {
		t.Fatal("no upgrades")
	}
	for _, d := range drops {
		for _, migrates := range []bool{true, false} {
			bundles := t.TempDir()
			before := slices.Clone(d.dropped)
			if migrates {
				before = append(slices.Clone(d.versions), d.dropped...)
			}
			writeBundle(t, bundles, d.pkg, d.from, "", "[]")
			writeFiles(t, bundles, filepath.Join(d.pkg, d.from, "manifests/crd.yaml"), definition(d.crd, before))
			dir, cache := writeWorkspace(t, bundles, "1.34", d.pkg)
			writeBundle(t, bundles, d.pkg, d.to, d.pkg+".v"+d.from, "[]")
			writeFiles(t, bundles, filepath.Join(d.pkg, d.to, "manifests/crd.yaml"), definition(d.crd, d.versions))
			p := openProject(t, cache, dir)
			opt := p.ResolveOptions()
			opt.Upgrade = true
			in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: opt, Fresh: true})
			check(t, err)
			got, err := workspace.Resolve(context.Background(), in)
			check(t, err)
			if pin, _ := got.Lock.Pin(d.pkg, d.pkg); pin.Version != d.from || (pin.Storage != nil) != migrates {
				t.Errorf("%s: pinned %s, storage %+v", d.pkg, pin.Version, pin.Storage)
			}
			for _, v := range d.dropped {
				if !slices.ContainsFunc(got.Warnings, func(w diag.Warning) bool {
					return w.Code == "held" && strings.Contains(w.Msg, d.pkg+".v"+d.to+" no longer has ") && strings.Contains(w.Msg, v+" of "+d.crd)
				}) {
					t.Errorf("%s %s: %s of %s is not reported: %v", d.pkg, d.to, v, d.crd, got.Warnings)
				}
			}
		}
	}
}
