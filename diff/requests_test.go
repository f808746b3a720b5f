package diff

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sized(kind, name, replicas, resources string) string {
	return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: ops}\nspec:\n  replicas: " + replicas +
		"\n  template: {spec: {containers: [{name: c, image: i, resources: " + resources + "}]}}"
}

// TestResourceChange checks the change of requests and limits of an operator. Changed, added and removed
// workloads count, multiplied by their replicas, in each cluster and in all clusters together.
func TestResourceChange(t *testing.T) {
	const small, large = "{requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}", "{requests: {cpu: 250m, memory: 64Mi}, limits: {cpu: 1, memory: 1Gi}}"
	for name, c := range map[string]struct{ before, after, want string }{
		"same":            {sized("Deployment", "a", "2", small), sized("Deployment", "a", "2", small), ""},
		"larger":          {sized("Deployment", "a", "2", small), sized("Deployment", "a", "2", large), "requests: CPU +300m; limits: CPU +2, memory +1792Mi"},
		"smaller":         {sized("Deployment", "a", "2", large), sized("Deployment", "a", "2", small), "requests: CPU -300m; limits: CPU -2, memory -1792Mi"},
		"more replicas":   {sized("StatefulSet", "a", "1", small), sized("StatefulSet", "a", "3", small), "requests: CPU +200m, memory +128Mi; limits: memory +256Mi"},
		"a pod on a node": {sized("DaemonSet", "a", "7", small), sized("DaemonSet", "a", "9", large), "requests: CPU +150m; limits: CPU +1, memory +896Mi"},
		"replaced":        {sized("Deployment", "a", "1", small), sized("Deployment", "b", "1", large), "requests: CPU +150m; limits: CPU +1, memory +896Mi"},
		"jobs end":        {sized("Job", "a", "1", small), sized("Job", "a", "1", large), ""},
		"refused":         {sized("Deployment", "a", "1", small), sized("Deployment", "a", "1", "{requests: {cpu: much}}"), "requests: CPU -100m, memory -64Mi; limits: memory -128Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", c.before)}, State{Objects: parsed(t, "ops/demo", "a.yaml", c.after)})
			if got := r.ResourceChange().String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Contains(string(Text(r, false)), "requests:") != (c.want != "") {
				t.Errorf("text:\n%s", Text(r, false))
			}
			twice := compare(t, State{Objects: parsed(t, "ops/demo", "a.yaml", c.before)}, State{Objects: parsed(t, "ops/demo", "a.yaml", c.after)})
			joined := Join([]Part{{[]string{"c1", "c2"}, r}, {[]string{"c3"}, twice}}, Fleet{[]string{"c1", "c2", "c3"}, []string{"c1", "c2", "c3"}}, CompareOptions{})
			if got, want := joined.ResourceChange(), (ResourceChange{}).plus(twice.ResourceChange(), 3); got != want {
				t.Errorf("in all clusters: %s, want %s", got, want)
			}
		})
	}
}

// TestResourcesByCluster checks that each cluster has its own change, and that every output has the sum.
func TestResourcesByCluster(t *testing.T) {
	part := func(cluster, cpu string) Part {
		state := func(cpu string) State {
			return State{Objects: parsed(t, "ops/demo", "a.yaml", sized("Deployment", "a", "1", "{requests: {cpu: "+cpu+"}}"))}
		}
		return Part{[]string{cluster}, compare(t, state("1"), state(cpu))}
	}
	r := Join([]Part{part("c1", "2"), part("c2", "4")}, Fleet{[]string{"c1", "c2"}, []string{"c1", "c2"}}, CompareOptions{})
	got := map[string]int64{}
	for _, op := range r.Operators {
		got[strings.Join(op.Clusters, ",")] = op.Resources.CPURequest
	}
	if d := cmp.Diff(map[string]int64{"c1": 1000, "c2": 3000}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]string{
		string(Text(r, false)): "sum over 2 clusters: requests: CPU +4\n", string(Markdown(r)): `sum over 2 clusters: requests: CPU \+4`, string(page): "sum over 2 clusters: requests: CPU &#43;4",
		string(data): `"resources":{"cpuRequest":4000}`,
	} {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}
