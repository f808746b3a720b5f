package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/health/gate"
)

const statusText = `{
  "apiVersion": "quayside.dev/v1alpha1", "kind": "Observed", "context": "c", "server": "https://c1", "environment": "dev", "cluster": "c1", "clusterUID": "u1", "observedAt": "2026-11-22T11:00:00Z", "healthy": false,
  "operators": [
    {"namespace": "ops", "package": "db", "version": "2.0.0", "pin": "` + digestA + `", "bundleDigest": "` + digestB + `", "state": "Ready", "upgradeable": "True", "readySince": "2026-11-21T09:00:00+01:00",
     "applied": ["2.0.0"], "details": {"reporter": {"state": "current", "ready": "True"}, "conditions": [], "objects": [{"kind": 1}]}},
    {"namespace": "ops", "package": "cache", "version": "1.0.0", "bundleDigest": "` + digestA + `", "state": "Failed", "message": "no pods", "upgradeable": "False", "upgradeMessage": "busy", "readySince": "2026-11-21T08:00:00Z"},
    {"namespace": "ops", "package": "queue", "version": "1.0.0", "bundleDigest": "` + digestA + `", "state": "Ready", "details": {"reporter": {"state": "stale"}}}
  ]
}
`

const dumpText = `apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: quayside.dev/v1alpha1
  kind: Installation
  metadata: {namespace: ops, name: db, generation: 3, labels: {a: b}}
  spec: {package: db, version: 2.0.0, pin: "` + digestA + `", bundleDigest: "` + digestB + `", objects: []}
  status:
    observedGeneration: 3
    pin: "` + digestA + `"
    observedAt: "2026-11-22T11:00:00Z"
    readySince: "2026-11-21T08:00:00Z"
    conditions:
    - {type: Ready, status: "True", message: all is well, reason: Ready, lastTransitionTime: "2026-11-01T00:00:00Z"}
    - {type: Upgradeable, status: "False", message: busy, reason: Busy}
- {apiVersion: v1, kind: Namespace, metadata: {name: ops, uid: u2}}
- {apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: u1}}
- apiVersion: quayside.dev/v1alpha1
  kind: Installation
  metadata: {namespace: ops, name: cache, generation: 4}
  spec: {package: cache, version: 1.0.0, pin: "` + digestB + `", bundleDigest: "` + digestA + `"}
  status: {observedGeneration: 3, pin: "` + digestA + `", observedAt: "2026-11-22T11:00:00Z", readySince: "2026-11-21T08:00:00Z", conditions: [{type: Ready, status: "True"}]}
---
apiVersion: quayside.dev/v1alpha1
kind: Installation
metadata: {namespace: ops, name: queue}
spec: {package: queue, version: 1.0.0, pin: "` + digestB + `"}
`

// TestRead parses the output of 'quayside status' and of kubectl.
func TestRead(t *testing.T) {
	eleven, since := time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		data string
		want []gate.Observation
	}{
		"status": {statusText, []gate.Observation{
			{Environment: "dev", Cluster: "c1", ClusterUID: "u1", Operator: "ops/db", At: eleven, Version: "2.0.0", Bundle: digestB, Checksum: digestA, Healthy: true, Message: "Ready", Since: since, Upgradeable: "True"},
			{Environment: "dev", Cluster: "c1", ClusterUID: "u1", Operator: "ops/cache", At: eleven, Version: "1.0.0", Bundle: digestA, Message: "Failed: no pods", Upgradeable: "False", UpgradeMessage: "busy"},
			{Environment: "dev", Cluster: "c1", ClusterUID: "u1", Operator: "ops/queue", At: eleven, Version: "1.0.0", Bundle: digestA, Healthy: true, Message: "Ready"},
		}},
		"dump": {dumpText, []gate.Observation{
			{ClusterUID: "u1", Operator: "ops/db", At: eleven, Version: "2.0.0", Bundle: digestB, Checksum: digestA, Healthy: true, Message: "Ready", Since: since, Upgradeable: "False", UpgradeMessage: "busy"},
			{ClusterUID: "u1", Operator: "ops/cache", At: eleven, Version: "1.0.0", Bundle: digestA, Checksum: digestB, Message: "Unknown: its reporter has not reported this pin yet"},
			{ClusterUID: "u1", Operator: "ops/queue", Version: "1.0.0", Checksum: digestB, Message: "Unknown: its reporter has not reported this pin yet"},
		}},
		"all": {`{"environments": [{"directory": "dev", "exitCode": 0, "document": {"apiVersion": "quayside.dev/v1alpha1", "kind": "Observed", "environment": "dev", "cluster": "c1", "observedAt": "2026-11-22T11:00:00Z", "operators": [{"namespace": "ops", "package": "db", "state": "Ready"}]}},
			{"directory": "prod", "exitCode": 2, "document": {"conflicts": [], "errors": [{"message": "no"}]}}]}`, []gate.Observation{
			{Environment: "dev", Cluster: "c1", Operator: "ops/db", At: eleven, Healthy: true, Message: "Ready"},
		}},
		"not reached": {`{"conflicts": [], "errors": [{"message": "no"}]}`, nil},
		"empty list":  {"kind: List\napiVersion: v1\nitems: []\n", nil},
		"api list": {`{"kind": "InstallationList", "apiVersion": "quayside.dev/v1alpha1", "items": [{"metadata": {"namespace": "ops"}, "spec": {"package": "db"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`, []gate.Observation{
			{Operator: "ops/db", Healthy: true, Message: "Ready"},
		}},
	} {
		read, err := Read("f", []byte(c.data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := Observations(read)
		slices.SortFunc(got, func(a, b gate.Observation) int { return strings.Compare(a.Operator, b.Operator) })
		slices.SortFunc(c.want, func(a, b gate.Observation) int { return strings.Compare(a.Operator, b.Operator) })
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

// TestReadFaults checks the message and the position of each fault.
func TestReadFaults(t *testing.T) {
	const wanted = ": expected a file of 'quayside status --save', or the output of 'quayside status -o json' or 'kubectl get installations.quayside.dev -A -o yaml'"
	for name, c := range map[string]struct{ in, want string }{
		"nothing":        {"", "f: empty" + wanted},
		"another kind":   {"apiVersion: v1\nkind: Pod\n", `f:1:1: kind "Pod"` + wanted},
		"something":      {"a: b\n", "f:1:1: unknown document" + wanted},
		"pods":           {"kind: List\nitems:\n- {kind: Pod}\n", `f:3:3: kind "Pod" among Installations` + wanted},
		"no list":        {"kind: List\nitems: {}\n", "f:2:8: items: expected a list"},
		"another's":      {"kind: Installation\napiVersion: operator.tigera.io/v1\n", `f:2:13: an Installation of "operator.tigera.io/v1" does not belong to quayside: use installations.quayside.dev`},
		"no name":        {"kind: Installation\nmetadata: {namespace: ops}\n", "f:1:1: operator \"ops/\": must be namespace/package\n" + `f:1:1: operator "ops/": no package`},
		"older output":   {"cluster: c\nenvironment: dev\noperators:\n- {operator: a/b, state: Ready}\n", "f:1:1: no kind: an older quayside printed this observation\n  hint: write a new file with 'quayside status --save FILE'"},
		"older of all":   {"environments:\n- {document: {cluster: c, operators: []}}\n", "f:2:14: no kind: an older quayside printed this observation\n  hint: write a new file with 'quayside status --save FILE'"},
		"every one":      {"apiVersion: quayside.dev/v1alpha1\nkind: Observed\noperators:\n- {namespace: a, package: b, pin: x, upgradeable: maybe}\n", "f:4:3: operator \"a/b\": no state\nf:4:35: pin: \"x\" is not a checksum\nf:4:51: upgradeable: \"maybe\": must be one of True, False, Unknown"},
		"wrong type":     {"kind: Installation\nmetadata: {namespace: [ops]}\n", "f:2:23: metadata.namespace: expected a scalar, got a list"},
		"not UTF-8":      {"\xff", "f:1:1: not UTF-8"},
		"not quite YAML": {"a: [\n", "f:2: malformed YAML: did not find expected node content"},
	} {
		_, err := Read("f", []byte(c.in))
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// FuzzRead parses arbitrary files and checks the invariants that the gate requires of observations.
func FuzzRead(f *testing.F) {
	f.Add([]byte(statusText))
	f.Add([]byte(dumpText))
	f.Add([]byte("kind: List\nitems: [{}, [], ~, {kind: Installation, spec: 3}]\n"))
	f.Add([]byte("environments: [{document: {operators: [~], cluster: c}}]\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		read, err := Read("f", in)
		var faults diag.List
		if err != nil && !errors.As(err, &faults) {
			t.Fatalf("%T: %v", err, err)
		}
		for _, o := range Observations(read) {
			if strings.Count(o.Operator, "/") != 1 {
				t.Errorf("%+v", o)
			}
			o.Cluster = "c1"
			p := gate.Pin{Environment: o.Environment, Operator: o.Operator, Bundle: digestB, Checksum: digestA, Clusters: []string{"c1"}}
			if v := gate.Judge(gate.DefaultCriteria(), p, []gate.Observation{o}, time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)); v.Pass && !o.Healthy {
				t.Errorf("%+v passes", o)
			}
		}
	})
}
