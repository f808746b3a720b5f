package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/test/cluster/harness"
)

// TestChartUpgrades applies the next version of real charts and releases over the previous version. The cluster
// stores two custom resources of each kind: one with the required fields, and one with all fields. `quayside
// diff` must have reported each object that the API server refuses, and each field, version or kind that is
// lost. The test runs a tenth of the upgrades, or all if QUAYSIDE_ARRIVAL is "all".
func TestChartUpgrades(t *testing.T) {
	t.Parallel() // has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to upgrade")
	}
	part := uint32(10)
	if os.Getenv("QUAYSIDE_ARRIVAL") == "all" {
		part = 1
	}
	cluster := harness.Start(t, harness.Options{APIOnly: true, NoWebhooks: true})
	program := build(t)
	buildIn(t, "quayside-charts", "./cmd/quayside-charts")
	sum := upgradeCounts{}
	for _, p := range append(chartPairs(t, corpus, part), releasePairs(t, corpus, part)...) {
		t.Run(p.name(), func(t *testing.T) {
			u := upgrade{upgradePair: p, applier: applier(t, cluster), counts: sum, patience: 60}
			u.quayside = newWorkspace(t, program, nil)
			u.test(t)
		})
	}
	for _, what := range slices.Sorted(maps.Keys(sum)) {
		t.Logf("%6d %s", sum[what], what)
	}
}

// upgradeCounts counts events of upgrades.
type upgradeCounts map[string]int

// upgradePair is two consecutive versions of an operator.
type upgradePair struct {
	kind, pkg string // kind is "charts" or "releases"
	old, now  string // versions
	dir       string // the catalog
}

func (p upgradePair) name() string { return p.kind + "/" + p.pkg + "/" + p.old + "-" + p.now }

// pairsOf returns a sample of a package's pairs of consecutive versions: about one pair in n.
func pairsOf(t *testing.T, kind, pkg, dir string, versions []string, n uint32) []upgradePair {
	t.Helper()
	parsed := map[string]*version.Version{}
	for _, v := range versions {
		p, err := version.ParseGeneric(v)
		if err != nil {
			t.Logf("%s %s: %v", pkg, v, err)
			continue
		}
		parsed[v] = p
	}
	sorted := slices.SortedFunc(maps.Keys(parsed), func(a, b string) int {
		if parsed[a].LessThan(parsed[b]) {
			return -1
		}
		return 1
	})
	var out []upgradePair
	for i := 1; i < len(sorted); i++ {
		p := upgradePair{kind: kind, pkg: pkg, old: sorted[i-1], now: sorted[i], dir: dir}
		if inSample(p.name(), n) {
			out = append(out, p)
		}
	}
	return out
}

// chartPairs returns about one in n upgrades of the charts in the corpus.
func chartPairs(t *testing.T, corpus string, n uint32) []upgradePair {
	t.Helper()
	dir := t.TempDir()
	eachFile(t, filepath.Join(corpus, "charts", "charts.tar.zst"), func(name, text string) {
		if path.Ext(name) == ".tgz" || strings.HasSuffix(name, ".values.yaml") || path.Base(name) == "provenance.tsv" {
			quayside{dir: dir}.write(t, name, text)
		}
	})
	provenance, err := os.ReadFile(filepath.Join(dir, "charts", "provenance.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string][]string{}
	for line := range strings.Lines(string(provenance)) {
		columns := strings.Split(line, "\t") // operator, chart, version, file
		pkg, version := columns[1], columns[2]
		if pkg == "chart" {
			continue
		}
		versions[pkg] = append(versions[pkg], version)
		own := filepath.Join(dir, "catalogs", pkg)
		if err := os.MkdirAll(own, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "charts", "repo", columns[3]), filepath.Join(own, columns[3])); err != nil {
			t.Fatal(err)
		}
		for _, values := range []string{"required", "alt"} {
			text, err := os.ReadFile(filepath.Join(dir, "charts", "golden", columns[0], version, values+".values.yaml"))
			if err == nil {
				quayside{dir: dir}.write(t, "values/"+pkg+"-"+version+"-"+values+".yaml", string(text))
			}
		}
	}
	var out []upgradePair
	for _, pkg := range slices.Sorted(maps.Keys(versions)) {
		out = append(out, pairsOf(t, "charts", pkg, filepath.Join(dir, "catalogs", pkg), versions[pkg], n)...)
	}
	return out
}

// releasePairs returns about one in n upgrades of the releases in the corpus. Each version of a release consists
// of the files that chosenFiles selects.
func releasePairs(t *testing.T, corpus string, n uint32) []upgradePair {
	t.Helper()
	dir, from := t.TempDir(), map[string]map[string]string{}
	eachFile(t, filepath.Join(corpus, "charts", "releases.tar.zst"), func(name, text string) {
		parts := strings.SplitN(name, "/", 4) // releases/PACKAGE/VERSION/file
		if len(parts) == 4 && path.Ext(name) == ".yaml" && !strings.HasPrefix(parts[3], "kustomize/") {
			id := parts[1] + "/" + parts[2]
			if from[id] == nil {
				from[id] = map[string]string{}
			}
			from[id][parts[3]] = text
		}
	})
	versions := map[string][]string{}
	for id, files := range from {
		pkg, version, _ := strings.Cut(id, "/")
		versions[pkg] = append(versions[pkg], version)
		for i, name := range chosenFiles(slices.Sorted(maps.Keys(files))) {
			quayside{dir: dir}.write(t, fmt.Sprintf("%s/%s/%d.yaml", pkg, version, i), files[name])
		}
	}
	var out []upgradePair
	for _, pkg := range slices.Sorted(maps.Keys(versions)) {
		out = append(out, pairsOf(t, "releases", pkg, dir, versions[pkg], n)...)
	}
	return out
}

// chosenFiles returns one file that installs a whole release or, if there is no such file, all files.
func chosenFiles(files []string) []string {
	for _, alone := range []string{"build.yaml", "build.manifests-cluster-install.yaml", "/bundle.yaml"} {
		if i := slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix("/"+f, alone) }); i >= 0 {
			return files[i : i+1]
		}
	}
	if i := slices.IndexFunc(files, func(f string) bool { return strings.HasPrefix(f, "build.") }); i >= 0 {
		return files[i : i+1]
	}
	return files
}

// upgrade is an upgrade of an operator in a cluster.
type upgrade struct {
	upgradePair
	quayside
	applier *harness.Applier
	counts  upgradeCounts

	old, now []*unstructured.Unstructured // the rendered objects
	stderr   string                       // of rendering the new version

	declaration string // of the new version
	stored      []*storedResource
	said        findings
	applied     []*unstructured.Unstructured
	patience    int // number of retries that are left
}

// storedResource is a custom resource that the cluster stores before the upgrade.
type storedResource struct {
	object *unstructured.Unstructured // as in the repository
	before *unstructured.Unstructured // as stored
	crd    *unstructured.Unstructured // before the upgrade
}

func (u *upgrade) test(t *testing.T) {
	if !u.render(t) {
		return
	}
	ctx := within(t, 5*time.Minute)
	t.Cleanup(func() { u.uninstall(context.WithoutCancel(ctx), t) })
	u.install(ctx, t)
	u.store(ctx, t)
	u.counts["upgrades"]++
	u.compareWithOld(t)
	refused := u.apply(ctx, t)
	time.Sleep(time.Second) // the API server learns the fields of a changed CRD after it accepts it
	u.applier.Forget()
	for _, s := range u.stored {
		u.compare(ctx, t, s, refused[harness.Name(s.crd)])
	}
	u.checkRemoved(t)
	for _, rule := range rejectionRules() {
		for _, f := range u.said.withRule(rule) {
			name := strings.TrimSuffix(f.Object.Kind+"."+f.Object.Group, ".") + " " + strings.TrimPrefix(f.Object.Namespace+"/"+f.Object.Name, "/")
			if refused[name] == nil {
				u.counts["reported, but accepted: "+rule]++
				t.Logf("reported, but accepted: %s %s %s: %s", rule, name, f.Field, f.Message)
			}
		}
	}
}

// render renders both versions. It uses the first values with which both versions can be rendered, and prefers
// values with which the old version has CRDs. It leaves the workspace at the old version.
func (u *upgrade) render(t *testing.T) bool {
	t.Helper()
	var faults, fallback string
	found := false
	for _, values := range []string{"required", "", "alt"} {
		old, ok := u.values(t, u.upgradePair.old, values)
		now, both := u.values(t, u.upgradePair.now, values)
		if !ok && !both {
			continue
		}
		fault := u.renderBoth(t, old, now)
		if fault != "" {
			faults += fault
			continue
		}
		if len(only(u.old, isCRD)) > 0 {
			return true
		}
		if !found {
			found, fallback = true, values
		}
	}
	if !found {
		u.counts["skipped: a version cannot be resolved or rendered"]++
		t.Skipf("refused:\n%s", faults)
	}
	old, _ := u.values(t, u.upgradePair.old, fallback)
	now, _ := u.values(t, u.upgradePair.now, fallback)
	return u.renderBoth(t, old, now) == ""
}

// values returns the named values for a version as a field of a Subscription, or false if they do not exist.
func (u *upgrade) values(t *testing.T, version, name string) (string, bool) {
	t.Helper()
	if name == "" {
		return "", true
	}
	text, err := os.ReadFile(filepath.Join(u.dirOfValues(), u.pkg+"-"+version+"-"+name+".yaml"))
	if err != nil {
		return "", false
	}
	return fmt.Sprintf(", values: %s", asJSON(t, text)), true
}

func (u *upgrade) dirOfValues() string {
	return filepath.Join(filepath.Dir(filepath.Dir(u.upgradePair.dir)), "values")
}

// renderBoth renders the new version and then the old version. If either fails, it returns the reason, otherwise "".
func (u *upgrade) renderBoth(t *testing.T, oldValues, newValues string) string {
	t.Helper()
	fault := ""
	u.now, u.stderr, fault = u.renderVersion(t, u.upgradePair.now, newValues)
	if fault != "" {
		return fault
	}
	u.declaration = u.read(t, "subscriptions/operator.yaml")
	u.old, _, fault = u.renderVersion(t, u.upgradePair.old, oldValues)
	return fault
}

// renderVersion declares, resolves and renders a version.
func (u *upgrade) renderVersion(t *testing.T, version, values string) ([]*unstructured.Unstructured, string, string) {
	t.Helper()
	catalog := fmt.Sprintf("%s: %q", map[string]string{"charts": "helm", "releases": "manifests"}[u.kind], "dir:"+u.upgradePair.dir)
	u.declareOnly(t, catalog, u.pkg, namespaceOf(u.kind+"-"+u.pkg+"-"+u.upgradePair.old), fmt.Sprintf(", catalog: corpus, version: %q, hops: any%s", strings.TrimPrefix(version, "v"), values))
	settings := u.read(t, "quayside.yaml") + "  policy:\n    waivers:\n"
	for _, rule := range []string{"missing-api", "missing-namespace", "missing-object", "missing-olm", "pod-security"} {
		settings += fmt.Sprintf("    - {rule: %s, reason: the cluster is compared with it, expires: %s}\n", rule, time.Now().AddDate(0, 1, 0).Format(time.DateOnly))
	}
	u.write(t, "quayside.yaml", settings)
	_ = os.Remove(filepath.Join(u.quayside.dir, "quayside.lock"))
	if _, stderr, code := u.run(t, "resolve", "--offline"); code != 0 {
		return nil, "", stderr
	}
	stdout, stderr, code := u.run(t, "render", "--offline", "--stdout")
	if code != 0 {
		return nil, "", stderr
	}
	list, err := harness.Objects([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	return list, stderr, ""
}

func (u *upgrade) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(u.quayside.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// install applies the old version.
func (u *upgrade) install(ctx context.Context, t *testing.T) {
	t.Helper()
	u.createNamespaces(ctx, t, u.old)
	for _, o := range u.old {
		if err := u.applyOne(ctx, t, o); err != nil {
			u.counts["objects of the old version that are refused"]++
			t.Logf("old version: %v", err)
		}
	}
}

func (u *upgrade) createNamespaces(ctx context.Context, t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	a := arrival{applier: u.applier}
	a.createNamespaces(ctx, t, list)
}

// applyOne applies an object if the cluster has its API. It deletes a hook of Argo CD and creates it again.
func (u *upgrade) applyOne(ctx context.Context, t *testing.T, o *unstructured.Unstructured) error {
	t.Helper()
	if !isCRD(o) {
		if err := u.applier.Serves(o); meta.IsNoMatchError(err) {
			return nil
		}
	}
	if o.GetAnnotations()["argocd.argoproj.io/hook"] != "" {
		if err := u.applier.Delete(ctx, o); err != nil {
			return err
		}
	}
	var err error
	for { // the API server learns the fields of a changed CRD after it serves it
		_, err = u.applier.Apply(ctx, []*unstructured.Unstructured{o})
		if err == nil || u.patience == 0 || !strings.Contains(err.Error(), "field not declared in schema") {
			break
		}
		u.patience--
		time.Sleep(500 * time.Millisecond)
	}
	if err == nil && !slices.Contains(names(u.applied), harness.Name(o)) {
		u.applied = append(u.applied, o)
	}
	return err
}

// store creates two custom resources of each kind of the old version, in the cluster and in the repository.
func (u *upgrade) store(ctx context.Context, t *testing.T) {
	t.Helper()
	namespace := namespaceOf(u.kind + "-" + u.pkg + "-" + u.upgradePair.old)
	for _, crd := range only(u.old, isCRD) {
		if !slices.Contains(names(u.applied), harness.Name(crd)) {
			continue
		}
		for _, full := range []bool{false, true} {
			name := "required"
			if full {
				name = "filled"
			}
			f := newFiller(u.applier, crd, full)
			before, err := f.create(ctx, namespace, name)
			if err != nil {
				u.counts["custom resources that cannot be created"]++
				t.Logf("%s, %s: %v", f.describe(), name, err)
				continue
			}
			u.counts["stored custom resources"]++
			s := &storedResource{object: f.named(namespace, name), before: before, crd: crd}
			u.stored = append(u.stored, s)
			u.write(t, fmt.Sprintf("uses/%s-%s.yaml", crd.GetName(), name), string(asYAML(t, s.object)))
		}
	}
}

// compareWithOld commits the old version, resolves and renders the new version, and runs diff. Before it resolves,
// it commits the removal of the lock, so that resolve does not hold back an upgrade that the cluster will reject.
func (u *upgrade) compareWithOld(t *testing.T) {
	t.Helper()
	u.must(t, "render", "--offline")
	repository := inWorkspace(t, u.quayside)
	old := repository.commit(t, u.quayside.dir, "install")
	u.remove(t, "quayside.lock")
	repository.commit(t, u.quayside.dir, "remove the lock")
	u.write(t, "subscriptions/operator.yaml", u.declaration)
	u.must(t, "resolve", "--offline")
	u.must(t, "render", "--offline")
	u.said = u.diff(t, old)
}

// apply applies the new version over the old version, and returns the refused objects. diff or render must have
// reported each refused object that the old version also has.
func (u *upgrade) apply(ctx context.Context, t *testing.T) map[string]error {
	t.Helper()
	u.createNamespaces(ctx, t, u.now)
	was := names(u.applied)
	refused := map[string]error{}
	for _, o := range u.now {
		err := u.applyOne(ctx, t, o)
		if err == nil {
			continue
		}
		name := harness.Name(o)
		refused[name] = err
		if !slices.Contains(was, name) {
			u.counts["new objects that are refused"]++
			t.Logf("added in the new version: %v", err)
			continue
		}
		u.counts["refused objects"]++
		reported := slices.ContainsFunc(u.said.forObject(o), func(f finding) bool { return slices.Contains(append(rejectionRules(), breakingRules()...), f.Rule) })
		if !reported && !strings.Contains(u.stderr, "will reject "+name+",") {
			u.counts["refused objects that diff did not report"]++
			t.Errorf("refused, not reported: %v", err)
		}
	}
	return refused
}

// compare compares a stored custom resource with the cluster after the upgrade.
func (u *upgrade) compare(ctx context.Context, t *testing.T, s *storedResource, refused error) {
	t.Helper()
	i := slices.IndexFunc(u.now, func(o *unstructured.Unstructured) bool { return harness.Name(o) == harness.Name(s.crd) })
	if i < 0 || refused != nil { // checkRemoved, or the refusal, reports it
		return
	}
	about := u.said.forObject(s.crd)
	live, err := u.applier.Get(ctx, s.object)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		u.counts["resources in a version that is no longer served"]++
		u.mustReport(t, s, "", about, err, "crd.version-unserved", "crd.served-version-removed", "crd.stored-version-removed", "crd.scope-changed", "crd.kind-changed")
		u.mustReport(t, s, "", u.said.forObject(s.object), err, "resources.version-not-served")
		return
	}
	if u.isConversion(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	u.compareFields(t, s, live, about)
	u.compareWrites(ctx, t, s, live, about)
}

// isConversion reports whether a request failed because no program answers the conversion webhook.
func (u *upgrade) isConversion(err error) bool {
	if err != nil && strings.Contains(err.Error(), "conversion webhook") {
		u.counts["requests that need the operator's conversion webhook"]++
		return true
	}
	return false
}

// compareFields checks that diff reports every field that a stored resource has lost.
func (u *upgrade) compareFields(t *testing.T, s *storedResource, live *unstructured.Unstructured, about findings) {
	t.Helper()
	for key := range s.before.Object {
		if key == "metadata" || key == "apiVersion" {
			continue
		}
		for _, d := range storedDifferences(key, s.before.Object[key], live.Object[key]) {
			u.counts["fields lost"]++
			field, _, _ := strings.Cut(d, ":")
			u.mustReport(t, s, field, about, fmt.Errorf("lost: %s", d),
				"crd.field-removed", "crd.map-removed", "crd.unknown-fields-pruned", "crd.type-changed", "crd.preserve-changed", "crd.version-differs", "crd.embedded-changed", "crd.nullable-removed")
			// A default of the old CRD is not in the repository: only the change of the CRD is reported.
			declared, has := s.object.Object[key]
			if key != "status" && has && slices.Contains(storedDifferences(key, declared, live.Object[key]), d) {
				u.mustReport(t, s, "", u.said.forObject(s.object), fmt.Errorf("lost: %s", d), breakingRules()...)
			}
		}
	}
}

// compareWrites writes the stored resource again: unchanged, and as a new object. diff must report refused writes.
func (u *upgrade) compareWrites(ctx context.Context, t *testing.T, s *storedResource, live *unstructured.Unstructured, about findings) {
	t.Helper()
	if err := u.applier.TryUpdate(ctx, live); err != nil && !u.isConversion(err) {
		u.counts["unchanged writes refused"]++
		u.mustReportRejection(t, s, about, err)
	}
	again := s.object.DeepCopy()
	again.SetName(again.GetName() + "-again")
	err := u.applier.TryCreate(ctx, again)
	own := u.said.forObject(s.object)
	breaks := slices.ContainsFunc(own, func(f finding) bool { return slices.Contains(breakingRules(), f.Rule) })
	switch {
	case u.isConversion(err):
	case err != nil:
		u.counts["new objects of the old form refused"]++
		u.mustReportRejection(t, s, about, err)
		if !breaks {
			u.counts["not reported for the resource"]++
			t.Errorf("%s: refused, not reported for the resource: %v", harness.Name(s.object), err)
		}
	case breaks:
		u.counts["reported for a resource, but accepted"]++
		t.Logf("%s: accepted, but diff reports %+v", harness.Name(s.object), own)
	}
}

// mustReportRejection checks that diff reports the fields for which the API server rejects a resource.
func (u *upgrade) mustReportRejection(t *testing.T, s *storedResource, about findings, reason error) {
	t.Helper()
	var rules []string
	for _, f := range about {
		if f.Severity != "info" {
			rules = append(rules, f.Rule)
		}
	}
	var status *apierrors.StatusError
	if !errors.As(reason, &status) || status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		u.mustReport(t, s, "", about, reason, rules...)
		return
	}
	for _, c := range status.ErrStatus.Details.Causes {
		u.mustReport(t, s, causeField(c), about, fmt.Errorf("%s: %s", c.Field, c.Message), rules...)
	}
}

// mustReport checks that one of the findings has one of the rules, and is about the field, or about a field
// above or below it.
func (u *upgrade) mustReport(t *testing.T, s *storedResource, field string, list findings, reason error, rules ...string) {
	t.Helper()
	for _, f := range list {
		if !slices.Contains(rules, f.Rule) {
			continue
		}
		for _, reported := range append(f.OtherFields, f.Field) {
			version, at, isField := strings.Cut(reported, " ")
			if at = strings.TrimPrefix(at, "(root)"); field == "" || !isField || version == s.object.GroupVersionKind().Version && related(at, field) {
				return
			}
		}
	}
	u.counts["losses and rejections that diff did not report"]++
	t.Errorf("%s: not reported (%s): %v", harness.Name(s.object), field, reason)
}

// related reports whether the path of a finding, such as .spec.a[].b{}, is equal to, above or below a path of
// the API server, such as spec.a[0].b[key].
func related(finding, field string) bool {
	a := splitFinding(finding)
	b := splitPath(strings.ReplaceAll(field, "[]", "[0]"))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && a[i] != "*" {
			return false
		}
	}
	return true
}

// splitFinding splits the path of a finding. Keys and indexes become "*".
func splitFinding(at string) []string {
	at = strings.NewReplacer("[]", ".*", "{}", ".*").Replace(at)
	return strings.FieldsFunc(at, func(r rune) bool { return r == '.' })
}

// checkRemoved checks that diff reports each removed object that holds data.
func (u *upgrade) checkRemoved(t *testing.T) {
	t.Helper()
	for _, o := range u.old {
		if slices.Contains(names(u.now), harness.Name(o)) || !holdsData(o) && !slices.Contains([]string{"Secret", "PersistentVolumeClaim"}, o.GetKind()) {
			continue
		}
		u.counts["removed objects with data"]++
		if !slices.ContainsFunc(u.said.forObject(o), func(f finding) bool { return strings.HasPrefix(f.Rule, "data.") }) {
			u.counts["removed objects that diff did not report"]++
			t.Errorf("%s is removed, not reported", harness.Name(o))
		}
	}
}

// uninstall deletes all objects of both versions. No program converts the custom resources.
func (u *upgrade) uninstall(ctx context.Context, t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for _, crd := range only(u.applied, isCRD) {
		if live, err := u.applier.Get(ctx, crd); err == nil && fmt.Sprint(live.Object["spec"].(map[string]any)["conversion"]) != "map[strategy:None]" {
			if err := u.applier.Merge(ctx, crd, map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}}}); err != nil {
				t.Error(err)
			}
		}
	}
	i := installation{applier: u.applier, objects: u.applied}
	for _, s := range u.stored {
		i.objects = append(i.objects, s.object)
	}
	err := i.remove(ctx)
	for range 20 { // the API server learns of the conversion after it accepts it
		if err == nil || !strings.Contains(err.Error(), "conversion webhook") {
			break
		}
		time.Sleep(500 * time.Millisecond)
		err = i.remove(ctx)
	}
	if err == nil {
		err = u.applier.AwaitGone(ctx, only(u.applied, isCRD))
	}
	if err != nil {
		t.Errorf("removing it: %v", err)
	}
}

func asYAML(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
