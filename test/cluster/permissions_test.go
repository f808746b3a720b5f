package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quayside/quayside/test/cluster/binaries"
	"github.com/quayside/quayside/test/cluster/harness"
)

var update = flag.Bool("update", false, "rewrite internal/k8s/defaults.json, internal/k8s/admit/required.txt, diff/immutable.txt")

// TestDefaultRBAC compares internal/k8s/defaults.json with the roles and bindings of a new API server.
func TestDefaultRBAC(t *testing.T) {
	t.Parallel()
	cluster := harness.Start(t, harness.Options{APIOnly: true})
	ctx := within(t, time.Minute)
	version, err := client(t, cluster).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	live, err := applier(t, cluster).ListGroup(ctx, "rbac.authorization.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"}
	slices.SortFunc(live, func(a, b *unstructured.Unstructured) int {
		if a.GetKind() != b.GetKind() {
			return slices.Index(kinds, a.GetKind()) - slices.Index(kinds, b.GetKind())
		}
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	rows := make([]string, len(live))
	for i, o := range live {
		object := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}
		for _, field := range []string{"aggregationRule", "roleRef", "rules", "subjects"} {
			if v := o.Object[field]; v != nil && (field != "rules" || o.Object["aggregationRule"] == nil) {
				object[field] = v
			}
		}
		meta := map[string]any{}
		for _, field := range []string{"labels", "name", "namespace"} {
			if v, ok, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", field); ok {
				meta[field] = v
			}
		}
		object["metadata"] = meta
		row, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = string(row)
	}
	got := fmt.Sprintf("{\"kubernetes\": %q, \"objects\": [\n%s\n]}\n", version.GitVersion, strings.Join(rows, ",\n"))
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "..", "..", "internal", "k8s", "defaults.json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("-file +API server (-update writes it)\n%s", d)
	}
}

// roleSet is a random set of roles and bindings. No other set has its names, namespace and labels.
type roleSet struct {
	Objects   []map[string]any
	Questions []answer
}

const roleSets, questionsEach = 2000, 25

// drawRoleSet draws the n-th set.
func drawRoleSet(r *rand.Rand, n int) roleSet {
	name := func(kind string, i int) string { return fmt.Sprintf("s%d-%s%d", n, kind, i) }
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	some := func(most int, from ...string) []any {
		var out []any
		for range 1 + r.IntN(most) {
			out = append(out, pick(from...))
		}
		return out
	}
	space := name("", 0)
	var s roleSet
	put := func(kind, namespace, name string, content map[string]any) {
		content["apiVersion"], content["kind"] = "rbac.authorization.k8s.io/v1", kind
		meta := map[string]any{"name": name}
		if labels := content["labels"]; labels != nil {
			meta["labels"] = labels
		}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		delete(content, "labels")
		content["metadata"] = meta
		s.Objects = append(s.Objects, content)
	}
	rules := func(urls bool) []any {
		var out []any
		for range 1 + r.IntN(3) {
			rule := map[string]any{"verbs": some(3, verbs...)}
			if urls && r.IntN(4) == 0 {
				rule["nonResourceURLs"] = some(2, append(urlPatterns, urlPaths...)...)
			} else {
				rule["apiGroups"], rule["resources"] = some(2, groups...), some(3, append(patterns, resources...)...)
				if r.IntN(3) == 0 {
					rule["resourceNames"] = some(2, "a", "b", "system:masters")
				}
			}
			out = append(out, rule)
		}
		return out
	}
	set, label := fmt.Sprintf("s%d", n), func() string { return pick("x", "y", "z") }
	var roles []string
	for i := range 1 + r.IntN(3) {
		roles = append(roles, name("plain", i))
		put("ClusterRole", "", name("plain", i), map[string]any{"labels": map[string]any{"set": set, "l": label()}, "rules": rules(true)})
	}
	for i := range r.IntN(4) { // some select each other
		roles = append(roles, name("aggregated", i))
		content := map[string]any{"labels": map[string]any{"set": set, "l": label()}}
		if i == 0 { // selected by no other role, which could copy its rules before they are replaced
			content["labels"], content["rules"] = map[string]any{}, rules(true)
		}
		selectors := []any{map[string]any{"matchLabels": map[string]any{"set": set, "l": label()}}}
		if r.IntN(2) == 0 {
			operator := pick("In", "NotIn", "Exists", "DoesNotExist")
			requirement := map[string]any{"key": "l", "operator": operator}
			if strings.HasSuffix(operator, "In") {
				requirement["values"] = some(2, "x", "y")
			}
			selectors = append(selectors, map[string]any{"matchExpressions": []any{requirement, map[string]any{"key": "set", "operator": "In", "values": []any{set}}}})
		}
		if r.IntN(4) == 0 {
			selectors = append(selectors, map[string]any{"matchLabels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-" + pick("admin", "edit", "view"): "true"}})
		}
		content["aggregationRule"] = map[string]any{"clusterRoleSelectors": selectors}
		put("ClusterRole", "", name("aggregated", i), content)
	}
	put("Role", space, "local", map[string]any{"rules": rules(false)})
	accounts := []string{name("a", 0), name("a", 1)}
	for i := range 3 + r.IntN(4) {
		account := pick(accounts...)
		subject := map[string]any{"kind": "ServiceAccount", "name": account, "namespace": space}
		switch r.IntN(5) {
		case 0:
			subject = map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccount:" + space + ":" + account}
		case 1:
			subject = map[string]any{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:" + space}
		}
		ref := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": pick(append(roles, "view", "edit", "admin", "system:auth-delegator", "missing")...)}
		kind, where := pick("ClusterRoleBinding", "RoleBinding"), ""
		if kind == "RoleBinding" {
			where = pick(space, "default")
			if r.IntN(3) == 0 {
				ref["kind"], ref["name"] = "Role", "local"
			}
			if where == space && subject["kind"] == "ServiceAccount" && r.IntN(2) == 0 {
				delete(subject, "namespace")
			}
		}
		put(kind, where, name("b", i), map[string]any{"roleRef": ref, "subjects": []any{subject}})
	}
	for range questionsEach {
		q := answer{Account: space + "/" + pick(accounts...)}
		if r.IntN(6) == 0 {
			q.Grant = grant{Verb: pick("get", "post"), URL: pick(append(urlPaths, "/version", "/apis/apps")...)}
		} else {
			q.Grant = grant{Namespace: pick("", space, "default", "kube-system"), Verb: pick(verbs[1:]...), Group: pick(groups[1:]...), Resource: pick(append(resources, "selfsubjectaccessreviews")...), Name: pick("", "", "a", "b", "system:masters")}
			if q.Grant.Resource == "selfsubjectaccessreviews" {
				q.Grant.Group = "authorization.k8s.io"
			}
		}
		s.Questions = append(s.Questions, q)
	}
	return s
}

//nolint:gochecknoglobals // values of random sets and questions; the first of some is a wildcard
var (
	verbs       = []string{"*", "get", "list", "create", "patch", "bind", "impersonate"}
	groups      = []string{"*", "", "apps", "rbac.authorization.k8s.io"}
	resources   = []string{"pods", "pods/exec", "deployments", "deployments/scale", "secrets", "clusterroles", "groups"}
	patterns    = []string{"*", "*/scale", "*/exec"}
	urlPaths    = []string{"/metrics", "/metrics/a", "/debug/pprof"}
	urlPatterns = []string{"*", "/metrics/*", "/debug*"}
)

// TestRandomRoleSets checks that quayside's RBAC model and the API server derive the same permissions from
// random sets of roles and bindings.
func TestRandomRoleSets(t *testing.T) {
	t.Parallel()
	cluster := harness.Start(t, harness.Options{})
	ctx := within(t, 15*time.Minute)
	r := rand.New(rand.NewPCG(1, 2026))
	sets := make([]roleSet, roleSets)
	for i := range sets {
		sets[i] = drawRoleSet(r, i)
	}
	answers := answeredByModel(ctx, t, buildIn(t, "effective", "test/cluster/cmd/effective/main.go"), sets)
	objects, err := dynamic.NewForConfig(cluster.RESTConfig)
	if err != nil {
		t.Fatal(err)
	}
	each(sets, func(i int) {
		if err := create(ctx, objects, i, sets[i].Objects); err != nil {
			t.Errorf("set %d: %v", i, err)
		}
	})
	if t.Failed() {
		return
	}
	asking := client(t, cluster).AuthorizationV1().SubjectAccessReviews()
	var allowed, wrong atomic.Int64
	deadline := time.Now().Add(5 * time.Minute) // for the controller of aggregated roles
	each(answers, func(i int) {
		for _, a := range answers[i] {
			got := review(ctx, t, asking, a)
			for got != a.Allowed && time.Now().Before(deadline) && wrong.Load() == 0 {
				time.Sleep(time.Second)
				got = review(ctx, t, asking, a)
			}
			if got {
				allowed.Add(1)
			}
			if got != a.Allowed && wrong.Add(1) <= 10 {
				set, _ := json.Marshal(sets[i].Objects)
				t.Errorf("set %d: %s %+v: API server %v, model %v: %s", i, a.Account, a.Grant, got, a.Allowed, set)
			}
		}
	})
	all := roleSets * questionsEach
	t.Logf("%d of %d allowed, %d wrong", allowed.Load(), all, wrong.Load())
	if n := int(allowed.Load()); n < all/10 || n > all*9/10 {
		t.Errorf("%d of %d questions are allowed: the sets are not balanced", n, all)
	}
}

// each calls do for every index of a list, for several indexes concurrently.
func each[T any](list []T, do func(i int)) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}

// create creates the namespace and the objects of a set.
func create(ctx context.Context, to dynamic.Interface, i int, objects []map[string]any) error {
	space := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": fmt.Sprintf("s%d-0", i)}}
	for _, o := range append([]map[string]any{space}, objects...) {
		u := &unstructured.Unstructured{Object: o}
		gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
		if err != nil {
			return err
		}
		kind := to.Resource(gv.WithResource(strings.ToLower(u.GetKind()) + "s"))
		if u.GetNamespace() != "" {
			_, err = kind.Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
		} else {
			_, err = kind.Create(ctx, u, metav1.CreateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answeredByModel returns the answers of quayside's RBAC model to the questions of each set.
func answeredByModel(ctx context.Context, t *testing.T, effective string, sets []roleSet) [][]answer {
	t.Helper()
	in, err := json.Marshal(sets)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, effective)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("asking the model: %v\n%s", err, log.String())
	}
	var answers [][]answer
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}
