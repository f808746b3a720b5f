package cluster_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

// refusedBundles are the published bundles that quayside refuses, with the reason.
var refusedBundles = map[string]string{
	"latest/eventing-kogito/1.2.0":          "malformed YAML in metadata/dependencies.yaml",
	"v1beta1/strimzi-kafka-operator/0.20.1": "the schema of a v1beta1 CRD has no equivalent in v1",
	"v1beta1/strimzi-kafka-operator/0.21.1": "the schema of a v1beta1 CRD has no equivalent in v1",
	"v1beta1/oadp-operator/0.2.5":           "a rule of a Role has no API groups",
	"v1beta1/oadp-operator/0.2.6":           "a rule of a Role has no API groups",
}

// TestNeeds installs published bundles, one after the other, in a plain Kubernetes cluster. It compares
// rejected objects and waiting pods with the messages of render. It installs a tenth of the bundles, or all if
// QUAYSIDE_NEEDS is "all".
func TestNeeds(t *testing.T) {
	t.Parallel() // mostly waits; each test has its own servers
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if corpus == "" {
		t.Skip("QUAYSIDE_CORPUS is not set: no real operators to install")
	}
	part := uint32(10)
	if os.Getenv("QUAYSIDE_NEEDS") == "all" {
		part = 1
	}
	cluster := harness.Start(t, harness.Options{})
	program := build(t)
	var total needCounts
	for _, archive := range []string{"latest", "v1beta1"} {
		bundles := unpack(t, filepath.Join(corpus, archive+".tar.zst"), part)
		for i, name := range slices.Sorted(maps.Keys(bundles)) {
			t.Run(archive+"/"+name, func(t *testing.T) {
				if reason := refusedBundles[archive+"/"+name]; reason != "" {
					t.Skipf("refused: %s", reason)
				}
				pkg, _, _ := strings.Cut(name, "/")
				namespace := fmt.Sprintf("%s-%d", archive, i) // one namespace per bundle, because deleting a namespace takes time
				c := needCheck{cluster: cluster, applier: applier(t, cluster), reported: map[string]string{}}
				c.render(t, workspaceOf(t, program, bundles[name], pkg, namespace, ""))
				c.test(t)
				total.add(c.counts)
			})
		}
	}
	t.Logf("%d operators, %d missing APIs, %d missing objects, %d operators with wrong reports", total.operators, total.apis, total.objects, total.wrong)
	if total.wrong*50 > total.operators {
		t.Errorf("more than 2 %% of the operators have errors for unneeded APIs or objects: %d of %d", total.wrong, total.operators)
	}
}

// TestTutorialNeedsNothing installs the operators of docs/tutorial.md in a plain Kubernetes cluster. It checks
// that render reports no need, and that every pod becomes ready.
func TestTutorialNeedsNothing(t *testing.T) {
	t.Parallel()
	cluster := harness.Start(t, harness.Options{})
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(root, "..", "..", "examples", "quickstart")
	memcached, err := os.ReadFile(filepath.Join(example, "subscriptions", "memcached.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	q := newWorkspace(t, build(t), map[string]string{
		"quayside.yaml": fmt.Sprintf(`
apiVersion: quayside.dev/v1alpha1
kind: Workspace
spec:
  catalogs: [{name: quickstart, namespace: olm, source: %q}]
  kubernetesVersion: "1.36"
  profile: plain
`, "oci:"+filepath.Join(example, "catalog")),
		"subscriptions/memcached.yaml": string(memcached),
	})
	if _, stderr, code := q.run(t, "add", "vault", "--offline"); code != 0 {
		t.Fatal(stderr)
	}
	c := needCheck{cluster: cluster, applier: applier(t, cluster), reported: map[string]string{}}
	c.render(t, q)
	if len(c.reported) > 0 || strings.Contains(c.stderr, "[missing-") || strings.Contains(c.stderr, "[pod-security]") {
		t.Errorf("needs were reported:\n%s", c.stderr)
	}
	c.test(t)
	if n := len(only(c.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })); n != 3 || c.counts != (needCounts{operators: 1}) {
		t.Errorf("got %d Deployments and %+v, want 3 without needs", n, c.counts)
	}
}

type needCounts struct{ operators, apis, objects, wrong int }

func (n *needCounts) add(m needCounts) {
	n.operators += m.operators
	n.apis += m.apis
	n.objects += m.objects
	n.wrong += m.wrong
}

// needCheck compares the reported needs of one operator with the cluster.
type needCheck struct {
	cluster  *harness.Cluster
	applier  *harness.Applier
	objects  []*unstructured.Unstructured
	reported map[string]string // messages, by API version ("example.com/v1") or object ("Secret ns/name")
	stderr   string
	counts   needCounts
}

// reportedNeed is a pattern for messages about an unmet need. Its groups are the need and the code.
var reportedNeed = regexp.MustCompile(`needs (?:API )?([^,]*?)(?: for [^,]*)?(?: \([^)]*\))?, .* \[(missing-[a-z]+)\]`)

// render renders the operator and collects its reported needs.
func (c *needCheck) render(t *testing.T, q quayside) {
	t.Helper()
	c.objects, c.stderr = q.renderedWithNeeds(t)
	for line := range strings.Lines(c.stderr) {
		if match := reportedNeed.FindStringSubmatch(line); match != nil {
			c.reported[match[1]] = line
		}
	}
}

// renderedWithNeeds returns the rendered objects and the messages about needs. If render fails because of
// needs, it waives these errors and renders again.
func (q quayside) renderedWithNeeds(t *testing.T) ([]*unstructured.Unstructured, string) {
	t.Helper()
	_, stderr, code := q.run(t, "render", "--offline")
	if code == 0 {
		return q.rendered(t), stderr
	}
	settings, err := os.ReadFile(filepath.Join(q.dir, "quayside.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(settings) + "  policy:\n    waivers:\n"
	for _, rule := range []string{"missing-api", "missing-namespace", "missing-object", "missing-olm", "pod-security"} {
		if strings.Contains(stderr, "["+rule+"]") {
			text += fmt.Sprintf("    - {rule: %s, reason: the cluster is compared with it, expires: %s}\n", rule, time.Now().AddDate(0, 1, 0).Format(time.DateOnly))
		}
	}
	q.write(t, "quayside.yaml", text)
	return q.rendered(t), stderr
}

func (c *needCheck) test(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	t.Cleanup(func() {
		i := installation{applier: c.applier, objects: c.objects}
		if err := i.remove(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("removing it: %v", err)
		}
	})
	c.counts.operators = 1
	used := map[string]bool{}
	var accepted []*unstructured.Unstructured
	for _, o := range c.objects {
		_, err := c.applier.Apply(ctx, []*unstructured.Unstructured{o})
		switch {
		case err == nil:
			accepted = append(accepted, o)
		case meta.IsNoMatchError(err):
			c.expect(t, used, o.GetAPIVersion(), fmt.Sprintf("%s was not applied: %v", harness.Name(o), err))
		case strings.Contains(c.stderr, "will reject "+harness.Name(o)+","),
			strings.Contains(c.stderr, ": "+strings.Replace(harness.Name(o), o.GetNamespace()+"/", "", 1)+": ") && strings.Contains(c.stderr, "the API server rejects the object"):
			t.Logf("%s: rejected as reported: %v", harness.Name(o), err)
		default:
			t.Errorf("%s: not reported: %v", harness.Name(o), err)
		}
	}
	for _, o := range c.objects {
		if isWebhook(o) { // no program answers here
			if err := c.applier.Delete(ctx, o); err != nil {
				t.Error(err)
			}
		}
	}
	c.checkWorkloads(ctx, t, used, accepted)
	c.checkWrong(ctx, t, used)
	c.objects = accepted
}

// expect checks that a missing API or object was reported.
func (c *needCheck) expect(t *testing.T, used map[string]bool, need, fault string) {
	t.Helper()
	if c.reported[need] == "" {
		t.Errorf("%s, but no need of %s was reported", fault, need)
	}
	used[need] = true
}

// checkWorkloads checks that the workloads become ready. It also checks that each object to which their pods
// refer exists or was reported.
func (c *needCheck) checkWorkloads(ctx context.Context, t *testing.T, used map[string]bool, accepted []*unstructured.Unstructured) {
	workloads := only(accepted, func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == "apps" })
	secrets := map[string]bool{} // of Certificates
	for _, o := range c.objects {
		if o.GetKind() == "Certificate" {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")
			secrets[o.GetNamespace()+"/"+name] = true
		}
	}
	for _, o := range workloads {
		waits := c.reported["PriorityClass.scheduling.k8s.io "+podField(o, "priorityClassName")] != "" ||
			c.reported["ServiceAccount "+o.GetNamespace()+"/"+podField(o, "serviceAccountName")] != "" || strings.Contains(c.stderr, "[pod-security]")
		for _, object := range []string{"PriorityClass " + podField(o, "priorityClassName"), "ServiceAccount " + o.GetNamespace() + "/" + podField(o, "serviceAccountName")} {
			used[object] = used[object] || c.reported[object] != "" && !c.exists(ctx, t, object)
		}
		if !waits {
			c.await(ctx, t, o)
		}
		for _, object := range podReferences(t, o) {
			_, name, _ := strings.Cut(object, " ")
			if secrets[name] || c.exists(ctx, t, object) {
				continue
			}
			c.counts.objects++
			c.expect(t, used, object, fmt.Sprintf("%s waits for %s", harness.Name(o), object))
		}
	}
}

// await waits until a workload is ready.
func (c *needCheck) await(ctx context.Context, t *testing.T, o *unstructured.Unstructured) {
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := c.applier.Await(wait, []*unstructured.Unstructured{o}); err != nil {
		t.Errorf("%s does not become ready, without a reported need: %v", harness.Name(o), err)
		showEvents(t, c.cluster, o.GetNamespace())
	}
}

// checkWrong counts the operator if an error was reported for an API or object that the operator does not need.
// It ignores warnings about Secrets and ConfigMaps, and about APIs that only the ClusterServiceVersion
// requires: this test cannot find out whether the operator needs them.
func (c *needCheck) checkWrong(ctx context.Context, t *testing.T, used map[string]bool) {
	for need, line := range c.reported {
		switch {
		case used[need]:
			if strings.Contains(line, "[missing-api]") {
				c.counts.apis++
			}
		case strings.Contains(line, "[missing-config]") && !strings.Contains(line, "needs Secret ") && !strings.Contains(line, "needs ConfigMap "),
			strings.Contains(line, "spec.nativeAPIs"):
		default:
			t.Logf("not needed: %s", strings.TrimSpace(line))
			c.counts.wrong = 1
		}
	}
}

// exists reports whether the cluster has an object ("Secret ns/name" or "PriorityClass name").
func (c *needCheck) exists(ctx context.Context, t *testing.T, object string) bool {
	t.Helper()
	kind, name, _ := strings.Cut(object, " ")
	namespace, short, namespaced := strings.Cut(name, "/")
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(map[string]string{"PriorityClass.scheduling.k8s.io": "scheduling.k8s.io/v1"}[kind])
	if o.GetAPIVersion() == "" {
		o.SetAPIVersion("v1")
	}
	kind, _, _ = strings.Cut(kind, ".")
	o.SetKind(kind)
	o.SetName(name)
	if namespaced {
		o.SetNamespace(namespace)
		o.SetName(short)
	}
	_, err := c.applier.Get(ctx, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func podField(o *unstructured.Unstructured, field string) string {
	value, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", field)
	return value
}

// podReferences returns the Secrets, ConfigMaps and claims without which a kubelet does not start the
// workload's pods.
func podReferences(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var pod corev1.PodSpec
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod); err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(kind, name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			out = append(out, kind+" "+o.GetNamespace()+"/"+name)
		}
	}
	for _, v := range pod.Volumes {
		if s := v.Secret; s != nil {
			add("Secret", s.SecretName, s.Optional)
		}
		if m := v.ConfigMap; m != nil {
			add("ConfigMap", m.Name, m.Optional)
		}
		if p := v.PersistentVolumeClaim; p != nil {
			add("PersistentVolumeClaim", p.ClaimName, nil)
		}
		if p := v.Projected; p != nil {
			for _, source := range p.Sources {
				if s := source.Secret; s != nil {
					add("Secret", s.Name, s.Optional)
				}
				if m := source.ConfigMap; m != nil {
					add("ConfigMap", m.Name, m.Optional)
				}
			}
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, e := range container.EnvFrom {
			if s := e.SecretRef; s != nil {
				add("Secret", s.Name, s.Optional)
			}
			if m := e.ConfigMapRef; m != nil {
				add("ConfigMap", m.Name, m.Optional)
			}
		}
		for _, e := range container.Env {
			if e.ValueFrom == nil {
				continue
			}
			if s := e.ValueFrom.SecretKeyRef; s != nil {
				add("Secret", s.Name, s.Optional)
			}
			if m := e.ValueFrom.ConfigMapKeyRef; m != nil {
				add("ConfigMap", m.Name, m.Optional)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unpack extracts about one in n bundles of an archive. The result maps "package/version" to a corpus directory
// with only that bundle.
func unpack(t *testing.T, archive string, n uint32) map[string]string {
	t.Helper()
	out, dir := map[string]string{}, t.TempDir()
	eachFile(t, archive, func(file, text string) {
		parts := strings.SplitN(file, "/", 3)
		if len(parts) < 3 || !inSample(parts[0]+"/"+parts[1], n) {
			return
		}
		name := parts[0] + "/" + parts[1]
		out[name] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		q := quayside{dir: filepath.Join(out[name], "bundles", parts[0], parts[1])}
		q.write(t, parts[2], text)
	})
	return out
}

// inSample reports whether a name is in the sample, which contains about one in n names.
func inSample(name string, n uint32) bool {
	sum := fnv.New32a()
	fmt.Fprint(sum, name)
	return sum.Sum32()%n == 0
}

// eachFile calls read for each file of an archive.
func eachFile(t *testing.T, archive string, read func(name, text string)) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	for files := tar.NewReader(unpacked); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		read(strings.TrimPrefix(h.Name, "./"), string(text))
	}
}
