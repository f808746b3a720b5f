package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// installation returns the spec for most tests: a Deployment with an image digest, a ClusterRole, a
// CRD of another operator, and an OperatorCondition.
func installation() v1alpha1.InstallationSpec {
	return v1alpha1.InstallationSpec{
		Package: "etcd", Version: "0.9.4", Bundle: "etcdoperator.v0.9.4", Pin: digestA, OperatorCondition: "etcd",
		Objects: []v1alpha1.ObjectReference{
			{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "etcdclusters.etcd.database.coreos.com"},
			{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "my-etcd", Name: "etcd-operator", Version: "0.9.4",
				Images: []v1alpha1.ContainerImage{{Container: "operator", Image: "quay.io/coreos/etcd-operator@" + digestA}},
			},
			{APIVersion: "operators.coreos.com/v2", Kind: "OperatorCondition", Namespace: "my-etcd", Name: "etcd", Version: "0.9.4"},
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "my-etcd.etcd.etcd-operator", Version: "0.9.4"},
		},
	}
}

// cluster returns the healthy objects of installation.
func cluster(t *testing.T) map[string]map[string]any {
	return map[string]map[string]any{
		"CustomResourceDefinition": parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcdclusters.etcd.database.coreos.com, labels: {quayside.dev/version: 9.9.9}}
status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}
`),
		"Deployment": parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: etcd-operator, namespace: my-etcd, generation: 2, labels: {quayside.dev/version: 0.9.4}, annotations: {quayside.dev/version: 0.9.4}}
spec:
  replicas: 1
  progressDeadlineSeconds: 600
  selector: {matchLabels: {name: etcd-operator}}
  template: {metadata: {labels: {name: etcd-operator}}, spec: {containers: [{name: operator, image: "quay.io/coreos/etcd-operator@`+digestA+`"}]}}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]
`),
		"OperatorCondition": parse(t, `
apiVersion: operators.coreos.com/v2
kind: OperatorCondition
metadata: {name: etcd, namespace: my-etcd, labels: {quayside.dev/version: 0.9.4}}
`),
		"ClusterRole": parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: my-etcd.etcd.etcd-operator, labels: {quayside.dev/version: 0.9.4}}
`),
	}
}

// pods returns one pod of the Deployment for each imageID.
func pods(t *testing.T, imageIDs ...string) []map[string]any {
	var out []map[string]any
	for i, id := range imageIDs {
		out = append(out, parse(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: etcd-operator-%d, namespace: my-etcd, labels: {name: etcd-operator, pod-template-hash: abc}}
status: {phase: Running, containerStatuses: [{name: operator, imageID: %q}, {name: sidecar, imageID: "x@%s"}]}
`, i, id, digestB)))
	}
	return out
}

// observe returns objects as observations of the references in spec, as if they were read from a cluster.
func observe(spec v1alpha1.InstallationSpec, objects map[string]map[string]any) []v1alpha1.Observed {
	var out []v1alpha1.Observed
	for _, ref := range spec.Objects {
		out = append(out, v1alpha1.Observed{Ref: ref, Object: objects[ref.Kind]})
	}
	return out
}

// set sets the value at a path of keys.
func set(o map[string]any, v any, path ...string) {
	for _, key := range path[:len(path)-1] {
		next, _ := o[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			o[key] = next
		}
		o = next
	}
	o[path[len(path)-1]] = v
}

// formatConditions formats conditions as "Type=Status Reason: Message".
func formatConditions(s v1alpha1.InstallationStatus) []string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message), ": "))
	}
	return out
}

func TestJudge(t *testing.T) {
	ok := []string{"docker.io/coreos/etcd-operator@" + digestA}
	well := "Ready=True Current: 4 objects as locked"
	same := "ImagesMatch=True Same: pods run the locked digests"
	for name, c := range map[string]struct {
		change func(objects map[string]map[string]any)
		read   func(got []v1alpha1.Observed)
		pods   []string
		want   []string
	}{
		"ok/all well": {pods: ok, want: []string{well, same}},
		"ok/upgradeable by spec": {
			change: func(o map[string]map[string]any) {
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "True", "reason": "Idle", "message": "go on"}}, "spec", "conditions")
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "False", "reason": "Old", "message": "stale"}}, "status", "conditions")
			},
			pods: ok, want: []string{well, "Upgradeable=True Idle: go on", same},
		},
		"ok/not upgradeable is ready": {
			change: func(o map[string]map[string]any) {
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "False", "reason": "not a reason", "message": "a backup runs"}}, "status", "conditions")
			},
			pods: ok, want: []string{well, "Upgradeable=False OperatorCondition: a backup runs", same},
		},
		"ok/an override wins": {
			change: func(o map[string]map[string]any) {
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "True", "reason": "Admin", "message": "I know"}}, "spec", "overrides")
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "False"}}, "spec", "conditions")
			},
			pods: ok, want: []string{well, "Upgradeable=True Admin: I know", same},
		},
		"ok/an override of Unknown holds": {
			change: func(o map[string]map[string]any) {
				set(o["OperatorCondition"], []any{map[string]any{"type": "Upgradeable", "status": "Unknown", "reason": "Admin"}}, "spec", "overrides")
			},
			pods: ok, want: []string{well, "Upgradeable=False Admin", same},
		},
		"missing": {
			change: func(o map[string]map[string]any) { delete(o, "ClusterRole") },
			pods:   ok,
			want: []string{
				"Ready=False Progressing: ClusterRole my-etcd.etcd.etcd-operator: it does not exist",
				"Reconciling=True Progressing: ClusterRole my-etcd.etcd.etcd-operator: it does not exist", same,
			},
		},
		"older version": {
			change: func(o map[string]map[string]any) {
				set(o["Deployment"], "0.9.2", "metadata", "labels", "quayside.dev/version")
				set(o["Deployment"], []any{map[string]any{"name": "operator", "image": "quay.io/coreos/etcd-operator@" + digestB}}, "spec", "template", "spec", "containers")
				set(o["Deployment"], int64(1), "status", "observedGeneration")
			},
			pods: []string{"x@" + digestB},
			want: []string{
				"Ready=False Progressing: Deployment my-etcd/etcd-operator: applied version 0.9.2, expected 0.9.4",
				"Reconciling=True Progressing: Deployment my-etcd/etcd-operator: applied version 0.9.2, expected 0.9.4",
				"ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet",
			},
		},
		"no label": {
			change: func(o map[string]map[string]any) { set(o["ClusterRole"], map[string]any{}, "metadata", "labels") },
			pods:   ok,
			want: []string{
				"Ready=False Progressing: ClusterRole my-etcd.etcd.etcd-operator: applied version none, expected 0.9.4",
				"Reconciling=True Progressing: ClusterRole my-etcd.etcd.etcd-operator: applied version none, expected 0.9.4", same,
			},
		},
		"changed image": {
			change: func(o map[string]map[string]any) {
				set(o["Deployment"], []any{map[string]any{"name": "operator", "image": "evil.example.com/x:1"}}, "spec", "template", "spec", "containers")
			},
			pods: []string{"evil.example.com/x@" + digestB},
			want: []string{
				`Ready=False Failed: Deployment my-etcd/etcd-operator: container "operator" runs image "evil.example.com/x:1", but the lock contains "quay.io/coreos/etcd-operator@` + digestA + `"`,
				`Stalled=True Failed: Deployment my-etcd/etcd-operator: container "operator" runs image "evil.example.com/x:1", but the lock contains "quay.io/coreos/etcd-operator@` + digestA + `"`,
				"ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet",
			},
		},
		"container replaced": {
			change: func(o map[string]map[string]any) {
				set(o["Deployment"], []any{map[string]any{"name": "other", "image": "x"}}, "spec", "template", "spec", "containers")
			},
			want: []string{
				`Ready=False Failed: Deployment my-etcd/etcd-operator: container "operator" is missing`,
				`Stalled=True Failed: Deployment my-etcd/etcd-operator: container "operator" is missing`,
				"ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet",
			},
		},
		"ok/sidecars are ignored": {
			change: func(o map[string]map[string]any) {
				set(o["Deployment"], []any{
					map[string]any{"name": "mesh", "image": "x"}, map[string]any{"name": "operator", "image": "quay.io/coreos/etcd-operator@" + digestA},
				}, "spec", "template", "spec", "containers")
			},
			pods: ok, want: []string{well, same},
		},
		"failed and on its way": {
			change: func(o map[string]map[string]any) {
				set(o["Deployment"], []any{map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}}, "status", "conditions")
				set(o["CustomResourceDefinition"], []any{}, "status", "conditions")
				set(o["OperatorCondition"], "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
				delete(o, "ClusterRole")
			},
			pods: ok,
			want: []string{
				"Ready=False Failed: Deployment my-etcd/etcd-operator: Progress deadline exceeded; OperatorCondition my-etcd/etcd: it is being deleted; " +
					"ClusterRole my-etcd.etcd.etcd-operator: it does not exist; and 1 more",
				"Stalled=True Failed: Deployment my-etcd/etcd-operator: Progress deadline exceeded",
				"Reconciling=True Progressing: OperatorCondition my-etcd/etcd: it is being deleted; ClusterRole my-etcd.etcd.etcd-operator: it does not exist; " +
					"CustomResourceDefinition etcdclusters.etcd.database.coreos.com: Install in progress",
				"ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet",
			},
		},
		"forbidden": {
			read: func(got []v1alpha1.Observed) {
				got[3].Object, got[3].Reason, got[3].Message = nil, v1alpha1.ReasonForbidden, "clusterroles is forbidden"
			},
			pods: ok,
			want: []string{"Ready=Unknown Unreadable: ClusterRole my-etcd.etcd.etcd-operator: clusterroles is forbidden", same},
		},
		"forbidden is no excuse": {
			change: func(o map[string]map[string]any) { delete(o, "CustomResourceDefinition") },
			read:   func(got []v1alpha1.Observed) { got[3].Object, got[3].Reason = nil, v1alpha1.ReasonForbidden },
			pods:   ok,
			want: []string{
				"Ready=False Progressing: CustomResourceDefinition etcdclusters.etcd.database.coreos.com: it does not exist; " +
					"ClusterRole my-etcd.etcd.etcd-operator: not permitted to read it",
				"Reconciling=True Progressing: CustomResourceDefinition etcdclusters.etcd.database.coreos.com: it does not exist", same,
			},
		},
		"unknown kind": {
			read: func(got []v1alpha1.Observed) { got[2].Object, got[2].Reason = nil, v1alpha1.ReasonNoKind },
			pods: ok,
			want: []string{
				"Ready=False Progressing: OperatorCondition my-etcd/etcd: the API server does not serve OperatorCondition of operators.coreos.com/v2",
				"Reconciling=True Progressing: OperatorCondition my-etcd/etcd: the API server does not serve OperatorCondition of operators.coreos.com/v2", same,
			},
		},
		"unreadable": {
			read: func(got []v1alpha1.Observed) {
				got[0].Object, got[0].Reason, got[0].Message = nil, v1alpha1.ReasonError, "timeout"
			},
			pods: ok,
			want: []string{"Ready=Unknown Unreadable: CustomResourceDefinition etcdclusters.etcd.database.coreos.com: timeout", same},
		},
		"another digest is reported, but harmless": {
			pods: []string{"quay.io/coreos/etcd-operator@" + digestB},
			want: []string{
				well, `ImagesMatch=False Different: container "operator" of Deployment my-etcd/etcd-operator runs ` + digestB + ", but the lock contains " + digestA,
			},
		},
		"one pod differs": {
			pods: []string{"x@" + digestA, "docker-pullable://x@" + digestB},
			want: []string{
				well, `ImagesMatch=False Different: container "operator" of Deployment my-etcd/etcd-operator runs ` + digestA + " and " + digestB + ", but the lock contains " + digestA,
			},
		},
		"no pods":                  {want: []string{well, "ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet"}},
		"digest of the config":     {pods: []string{digestA}, want: []string{well, "ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet"}},
		"id as CRI-O once had":     {pods: []string{strings.TrimPrefix(digestB, "sha256:")}, want: []string{well, "ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet"}},
		"digest cut short":         {pods: []string{"x@sha256:abc"}, want: []string{well, "ImagesMatch=Unknown NotReported: 1 of 1 containers cannot be compared yet"}},
		"ok/CRI-O names the image": {pods: []string{"quay.io/coreos/etcd-operator@" + digestA}, want: []string{well, same}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, objects := installation(), cluster(t)
			if c.change != nil {
				c.change(objects)
			}
			got := observe(spec, objects)
			if c.read != nil {
				c.read(got)
			}
			s := Judge(spec, 7, v1alpha1.InstallationStatus{}, got, pods(t, c.pods...), noon())
			if d := cmp.Diff(c.want, formatConditions(s)); d != "" {
				t.Errorf("conditions (-want +got):\n%s", d)
			}
			if s.ObservedGeneration != 7 || s.Pin != digestA || s.Version != "0.9.4" {
				t.Errorf("speaks of %d %s %s", s.ObservedGeneration, s.Pin, s.Version)
			}
			checkStatus(t, s)
		})
	}
}

// checkStatus checks the invariants of a status.
func checkStatus(t *testing.T, s v1alpha1.InstallationStatus) {
	t.Helper()
	n := s.Summary
	if n.Total != n.Current+n.InProgress+n.NotFound+n.Failed+n.Terminating+n.Forbidden+n.Unknown {
		t.Errorf("the counts do not match: %+v", n)
	}
	if int(n.Total-n.Current) != len(s.Objects)+int(s.MoreObjects) {
		t.Errorf("%d objects are listed and %d more counted, want %d that are not Current", len(s.Objects), s.MoreObjects, n.Total-n.Current)
	}
	if !slices.IsSortedFunc(s.Objects, func(a, b v1alpha1.ObjectHealth) int { return severityRank(a.Health) - severityRank(b.Health) }) {
		t.Errorf("not sorted by severity: %+v", s.Objects)
	}
	have := map[string]metav1.ConditionStatus{}
	for _, c := range s.Conditions {
		if _, twice := have[c.Type]; twice || c.Reason == "" || c.ObservedGeneration != s.ObservedGeneration || c.LastTransitionTime.IsZero() {
			t.Errorf("condition %+v", c)
		}
		have[c.Type] = c.Status
	}
	if have[v1alpha1.Ready] == "" || (have[v1alpha1.Ready] == metav1.ConditionTrue) != (n.Total > 0 && n.Current == n.Total) {
		t.Errorf("Ready is %q with %+v", have[v1alpha1.Ready], n)
	}
	if (have[v1alpha1.Stalled] == metav1.ConditionTrue) != (n.Failed > 0) || have[v1alpha1.Stalled] == metav1.ConditionFalse {
		t.Errorf("Stalled is %q with %+v", have[v1alpha1.Stalled], n)
	}
	if (have[v1alpha1.Reconciling] == metav1.ConditionTrue) != (n.InProgress+n.NotFound+n.Terminating > 0) || have[v1alpha1.Reconciling] == metav1.ConditionFalse {
		t.Errorf("Reconciling is %q with %+v", have[v1alpha1.Reconciling], n)
	}
	if len(s.Objects) > maxObjects || len(s.Images) > maxImages {
		t.Errorf("%d objects, %d images", len(s.Objects), len(s.Images))
	}
}

// TestJudgeAgain passes the status of one call to the next call, and checks that a transition time changes only
// with its condition.
func TestJudgeAgain(t *testing.T) {
	spec, objects := installation(), cluster(t)
	got := observe(spec, objects)
	first := Judge(spec, 1, v1alpha1.InstallationStatus{}, got, nil, noon())
	var stored v1alpha1.InstallationStatus // as decoded from the API server
	if err := json.Unmarshal(jsonOf(t, first), &stored); err != nil {
		t.Fatal(err)
	}
	for _, soon := range []time.Duration{0, 29 * time.Minute} {
		if again := Judge(spec, 1, stored, got, nil, noon().Add(soon)); string(jsonOf(t, again)) != string(jsonOf(t, first)) {
			t.Errorf("the same observation:\n%s\n%s", jsonOf(t, first), jsonOf(t, again))
		}
	}
	later := noon().Add(90*time.Minute + 500*time.Millisecond)
	again := Judge(spec, 1, stored, got, nil, later)
	if !again.ObservedAt.Time.Equal(later.Truncate(time.Second)) {
		t.Errorf("looked at %s, want %s", again.ObservedAt, later)
	}
	if again.ObservedAt = first.ObservedAt; string(jsonOf(t, again)) != string(jsonOf(t, first)) {
		t.Errorf("the same observation, later:\n%s\n%s", jsonOf(t, first), jsonOf(t, again))
	}
	delete(objects, "ClusterRole")
	broken := Judge(spec, 1, stored, observe(spec, objects), nil, later)
	for _, c := range broken.Conditions {
		want := later.Truncate(time.Second)
		if c.Type == v1alpha1.ImagesMatch {
			want = noon()
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s turned at %s, want %s", c.Type, c.LastTransitionTime, want)
		}
	}
}

// TestReadySince checks that ReadySince restarts after an interruption, and if the bundle changes while Ready
// stays True.
func TestReadySince(t *testing.T) {
	spec, objects := installation(), cluster(t)
	spec.BundleDigest = "sha256:a"
	got := observe(spec, objects)
	hour := func(n int) time.Time { return noon().Add(time.Duration(n) * time.Hour) }
	step := func(prev v1alpha1.InstallationStatus, spec v1alpha1.InstallationSpec, got []v1alpha1.Observed, at int, want time.Time) v1alpha1.InstallationStatus {
		t.Helper()
		s := Judge(spec, 1, prev, got, nil, hour(at))
		switch {
		case want.IsZero() && s.ReadySince != nil:
			t.Errorf("hour %d: Ready since %s, want empty", at, s.ReadySince)
		case !want.IsZero() && (s.ReadySince == nil || !s.ReadySince.Time.Equal(want)):
			t.Errorf("hour %d: Ready since %s, want %s", at, s.ReadySince, want)
		}
		return s
	}
	s := step(v1alpha1.InstallationStatus{}, spec, got, 0, hour(0))
	s = step(s, spec, got, 1, hour(0))
	config := spec
	config.Pin = "sha256:other-config"
	s = step(s, config, got, 2, hour(0))
	next := config
	next.BundleDigest = "sha256:b"
	s = step(s, next, got, 3, hour(3))
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.Ready); !c.LastTransitionTime.Time.Equal(hour(0)) {
		t.Errorf("Ready changed at %s: the test proves nothing", c.LastTransitionTime)
	}
	delete(objects, "ClusterRole")
	broken := step(s, next, observe(next, objects), 4, time.Time{})
	s = step(broken, next, got, 5, hour(5))
	bare := next
	bare.BundleDigest = ""
	s = step(s, bare, got, 6, hour(6))
	s = step(s, bare, got, 7, hour(6))
	bare.Pin = "sha256:next"
	step(s, bare, got, 8, hour(8))
}

// TestReplaced checks that a status has the previous version and the time at which it was replaced.
func TestReplaced(t *testing.T) {
	spec, objects := installation(), cluster(t)
	s := v1alpha1.InstallationStatus{}
	for i, step := range []struct {
		version, previous string
		at                int // hour of the replacement
	}{{"1.0.0", "", 0}, {"1.0.0", "", 0}, {"1.1.0", "1.0.0", 2}, {"1.1.0", "1.0.0", 2}, {"1.2.0", "1.1.0", 4}, {"1.1.0", "1.2.0", 5}} {
		spec.Version = step.version
		s = Judge(spec, 1, s, observe(spec, objects), nil, noon().Add(time.Duration(i)*time.Hour))
		if at := noon().Add(time.Duration(step.at) * time.Hour); s.PreviousVersion != step.previous || (s.ReplacedAt == nil) != (step.previous == "") || s.ReplacedAt != nil && !s.ReplacedAt.Time.Equal(at) {
			t.Errorf("hour %d: %s was replaced at %v, want %s at %v", i, s.PreviousVersion, s.ReplacedAt, step.previous, at)
		}
	}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestJudgeManyObjects(t *testing.T) {
	spec := v1alpha1.InstallationSpec{Version: "1.0.0"}
	for i := range 250 {
		spec.Objects = append(spec.Objects, v1alpha1.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: fmt.Sprintf("d-%03d", i),
			Images: []v1alpha1.ContainerImage{{Container: "c", Image: "x:1"}},
		})
	}
	s := Judge(spec, 1, v1alpha1.InstallationStatus{}, nil, nil, noon())
	checkStatus(t, s)
	if len(s.Objects) != maxObjects || s.MoreObjects != 150 || s.Summary.Unknown != 250 || len(s.Images) != maxImages || s.MoreImages != 150 {
		t.Errorf("%d objects and %d more, %d images and %d more, %+v", len(s.Objects), s.MoreObjects, len(s.Images), s.MoreImages, s.Summary)
	}
	if s.Objects[0].Name != "d-000" || s.Objects[99].Name != "d-099" {
		t.Errorf("from %s to %s", s.Objects[0].Name, s.Objects[99].Name)
	}
	if c := s.Conditions[len(s.Conditions)-1]; c.Type == v1alpha1.ImagesMatch {
		t.Errorf("no image is by digest, and still %+v", c)
	}
	none := Judge(v1alpha1.InstallationSpec{}, 1, v1alpha1.InstallationStatus{}, nil, nil, noon())
	if d := cmp.Diff([]string{"Ready=Unknown NoObjects: no objects expected"}, formatConditions(none)); d != "" {
		t.Error(d)
	}
}

// TestSelectors checks that Judge finds the pods of workloads with all forms of selectors.
func TestSelectors(t *testing.T) {
	pod := parse(t, `{metadata: {name: p, labels: {app: a, tier: back}}}`)
	for selector, want := range map[string]bool{
		`{matchLabels: {app: a}}`:           true,
		`{matchLabels: {app: b}}`:           false,
		`{matchLabels: {app: a, other: x}}`: false,
		`{matchExpressions: [{key: tier, operator: In, values: [front, back]}]}`:           true,
		`{matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}`:               false,
		`{matchExpressions: [{key: other, operator: NotIn, values: [back]}]}`:              true,
		`{matchExpressions: [{key: tier, operator: Exists}]}`:                              true,
		`{matchLabels: {app: a}, matchExpressions: [{key: tier, operator: DoesNotExist}]}`: false,
		`{matchExpressions: [{key: other, operator: DoesNotExist}]}`:                       true,
		`{matchExpressions: [{key: tier, operator: Sometimes}]}`:                           false,
		`{}`: false,
	} {
		o := parse(t, `{kind: Deployment, spec: {selector: `+selector+`}}`)
		if got := ownsPod(o, pod); got != want {
			t.Errorf("%s: %v", selector, got)
		}
	}
	set(pod, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	if ownsPod(parse(t, `{kind: Deployment, spec: {selector: {matchLabels: {app: a}}}}`), pod) {
		t.Error("a pod that is being deleted counts")
	}
}
