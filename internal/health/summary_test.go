package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/lockfile"
)

// statusOf returns a status in the form of Judge's result.
func statusOf(ready metav1.ConditionStatus, message string, n v1alpha1.ObjectCounts, more ...metav1.Condition) v1alpha1.InstallationStatus {
	return v1alpha1.InstallationStatus{
		Summary:    n,
		Conditions: append([]metav1.Condition{{Type: v1alpha1.Ready, Status: ready, Message: message}}, more...),
	}
}

func TestSummarize(t *testing.T) {
	pin := lockfile.Pin{Namespace: "ns", Package: "op", Version: "0.9.4", Bundle: "op.v0.9.4"}
	own := string(pin.Checksum())
	well := statusOf(metav1.ConditionTrue, "2 objects as locked", v1alpha1.ObjectCounts{Total: 2, Current: 2})
	installed := func(version, pin string) *v1alpha1.InstallationSpec {
		return &v1alpha1.InstallationSpec{Package: "op", Version: version, Pin: pin}
	}
	for name, c := range map[string]struct {
		found OperatorObservation
		want  string
	}{
		"ok/ready":                 {OperatorObservation{Status: well, Applied: []string{"0.9.4"}}, "Ready [0.9.4]"},
		"ok/ready, with reporter":  {OperatorObservation{Status: well, Applied: []string{"0.9.4"}, Spec: installed("0.9.4", own)}, "Ready [0.9.4]"},
		"ok/of the reporter alone": {OperatorObservation{Status: well, Spec: installed("0.9.4", own)}, "Ready [0.9.4]"},
		"never looked at":          {OperatorObservation{}, "Missing []: none of its objects exists in the cluster"},
		"nothing there": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "x", v1alpha1.ObjectCounts{Total: 2, NotFound: 2})}, "Missing []: none of its objects exists in the cluster",
		},
		"half there": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "Role x: it does not exist", v1alpha1.ObjectCounts{Total: 2, NotFound: 1, Current: 1}), Applied: []string{"0.9.4"}},
			"Progressing [0.9.4]: Role x: it does not exist",
		},
		"failed": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "Deployment x: stuck", v1alpha1.ObjectCounts{Total: 2, Failed: 1, InProgress: 1}), Applied: []string{"0.9.2", "0.9.4"}},
			"Failed [0.9.2 0.9.4]: Deployment x: stuck",
		},
		"unreadable": {
			OperatorObservation{Status: statusOf(metav1.ConditionUnknown, "Role x: not permitted to read it", v1alpha1.ObjectCounts{Total: 2, Forbidden: 1, Current: 1})},
			"Unknown []: Role x: not permitted to read it",
		},
		"behind": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "x", v1alpha1.ObjectCounts{Total: 2, InProgress: 2}), Applied: []string{"0.9.2"}, Spec: installed("0.9.2", digestB)},
			"OutOfSync [0.9.2]: behind: the cluster has 0.9.2 (pin sha256:bbbbbbbbbbbb), the lock 0.9.4",
		},
		"behind, no reporter": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "x", v1alpha1.ObjectCounts{Total: 2, InProgress: 2}), Applied: []string{"0.9.2"}},
			"OutOfSync [0.9.2]: behind: the cluster has 0.9.2, the lock 0.9.4",
		},
		"ahead": {
			OperatorObservation{Status: statusOf(metav1.ConditionFalse, "x", v1alpha1.ObjectCounts{Total: 2, InProgress: 2}), Applied: []string{"0.10.0"}},
			"OutOfSync [0.10.0]: ahead: the cluster has 0.10.0, the lock 0.9.4",
		},
		"another pin": {
			OperatorObservation{Status: well, Applied: []string{"0.9.4"}, Spec: installed("0.9.4", digestA)},
			"OutOfSync [0.9.4]: behind: the cluster has another pin of 0.9.4 (pin sha256:aaaaaaaaaaaa), the lock " + own[:len("sha256:")+12],
		},
		"not upgradeable": {
			OperatorObservation{Applied: []string{"0.9.4"}, Status: statusOf(metav1.ConditionTrue, "", v1alpha1.ObjectCounts{Total: 1, Current: 1},
				metav1.Condition{Type: v1alpha1.Upgradeable, Status: metav1.ConditionFalse, Message: "a backup runs"})},
			"Ready [0.9.4], upgradeable False: a backup runs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.found.Namespace, c.found.Package = "ns", "op"
			s := Summarize(&lockfile.File{Pins: []lockfile.Pin{pin}}, []OperatorObservation{c.found}, noon())
			if len(s.Operators) != 1 {
				t.Fatalf("%d operators", len(s.Operators))
			}
			o := s.Operators[0]
			got := fmt.Sprint(o.State, " ", o.Applied)
			if o.Message != "" {
				got += ": " + o.Message
			}
			if o.Upgradeable != "" {
				got += fmt.Sprintf(", upgradeable %s: %s", o.Upgradeable, o.UpgradeMessage)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if s.IsHealthy() != (o.State == StateReady) || string(o.Pin) != own || o.Version != "0.9.4" {
				t.Errorf("healthy: %v, %+v", s.IsHealthy(), o)
			}
		})
	}
}

// TestSummarizePins summarizes an operator without a pin, and a pin without an observation.
func TestSummarizePins(t *testing.T) {
	lock := &lockfile.File{Pins: []lockfile.Pin{{Namespace: "b", Package: "op", Version: "1.0.0"}, {Namespace: "a", Package: "zz", Version: "1.0.0"}}}
	s := Summarize(lock, []OperatorObservation{
		{Namespace: "b", Package: "old", Spec: &v1alpha1.InstallationSpec{Version: "0.1.0"}},
		{Namespace: "c", Package: "nothing"},
	}, noon().Add(time.Millisecond))
	var got []string
	for _, o := range s.Operators {
		got = append(got, fmt.Sprintf("%s/%s %s: %s", o.Namespace, o.Package, o.State, o.Message))
	}
	want := []string{
		"a/zz Missing: none of its objects exists in the cluster",
		"b/old Unpinned: the cluster has 0.1.0, not pinned in the lock",
		"b/op Missing: none of its objects exists in the cluster",
	}
	if d := cmp.Diff(want, got); d != "" || !s.At.Equal(noon()) {
		t.Errorf("at %s (-want +got):\n%s", s.At, d)
	}
}

func TestApplied(t *testing.T) {
	spec, objects := installation(), cluster(t)
	set(objects["ClusterRole"], "0.9.2", "metadata", "labels", v1alpha1.LabelVersion)
	set(objects["OperatorCondition"], "1.0.0_build", "metadata", "labels", v1alpha1.LabelVersion)
	set(objects["OperatorCondition"], "1.0.0+build", "metadata", "annotations", v1alpha1.LabelVersion)
	if d := cmp.Diff([]string{"0.9.2", "0.9.4", "1.0.0+build"}, ObservedVersions(spec, observe(spec, objects))); d != "" {
		t.Error(d) // 9.9.9 is the version of another operator
	}
}

const observedText = `# Written by quayside status, for --observed.
apiVersion: quayside.dev/v1alpha1
cluster: c1
clusterUID: u1
environment: dev
kind: Observed
observedAt: "2026-01-01T00:00:00Z"
operators:
- applied:
  - "1.0.0"
  bundleDigest: ` + digestB + `
  namespace: a
  package: zz
  pin: ` + digestA + `
  readySince: "2025-12-31T00:00:00Z"
  state: Ready
  upgradeMessage: "a backup runs: wait"
  upgradeable: "False"
  version: "1.0.0"
- message: the cluster has it
  namespace: b
  package: old
  state: Unpinned
`

// readOne reads a file with one summary.
func readOne(file string, data []byte) (*Summary, error) {
	all, err := Read(file, data)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d summaries", len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func TestObserved(t *testing.T) {
	f, err := readOne("observed.yaml", []byte(observedText))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(observedText, string(FormatObserved(*f))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	o, ok := f.Operator("a", "zz")
	if !ok || o.State != StateReady || o.Upgradeable != metav1.ConditionFalse || o.UpgradeMessage != "a backup runs: wait" || o.Pos.String() != "observed.yaml:9:3" {
		t.Errorf("%+v at %s", o, o.Pos)
	}
	if _, ok := f.Operator("a", "old"); ok {
		t.Error("unexpected a/old")
	}
	odd, err := readOne("f", []byte(strings.Replace(observedText, `"a backup runs: wait"`, `"a\e[31mb\n::error::c"`, 1)))
	if err != nil || odd.Operators[0].UpgradeMessage != `a\u001b[31mb ::error::c` {
		t.Errorf("a message of an operator is not sanitized: %+v, %v", odd, err)
	}
	empty, err := readOne("f", FormatObserved(Summary{At: noon()}))
	if err != nil || len(empty.Operators) != 0 || !empty.At.Equal(noon()) {
		t.Errorf("%+v, %v", empty, err)
	}
	supply := Summary{At: noon(), APIs: []string{"cert-manager.io/v1"}, Classes: []string{"PriorityClass//high", "StorageClass//fast"}}
	again, err := readOne("f", FormatObserved(supply))
	if err != nil || !slices.Equal(again.APIs, supply.APIs) || !slices.Equal(again.Classes, supply.Classes) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestParseObservedErrors(t *testing.T) {
	edit := func(old, now string) string { return strings.Replace(observedText, old, now, 1) }
	for name, c := range map[string]struct{ in, want string }{
		"empty":         {"", "f: empty: " + supportedInput},
		"header":        {"kind: Observed\n", "f:1:1: no apiVersion (expected quayside.dev/v1alpha1)"},
		"unknown field": {edit("upgradeable:", "upgradable:"), `f:18:3: unknown field "upgradable" (did you mean "upgradeable"?)`},
		"state":         {edit("state: Ready", "state: Fine"), `f:16:10: state: "Fine": must be one of Failed, Missing, OutOfSync, Unpinned, Progressing, Unknown, Ready`},
		"upgradeable":   {edit(`"False"`, "perhaps"), `f:18:16: upgradeable: "perhaps": must be one of True, False, Unknown`},
		"pin":           {edit(digestA, "sha256:x"), `f:14:8: pin: "sha256:x" is not a checksum`},
		"time":          {edit("2026-01-01T00:00:00Z", "yesterday"), `f:7:13: observedAt: "yesterday" is not a time such as 2026-01-31T12:00:00Z`},
		"twice":         {edit("namespace: b\n  package: old", "namespace: a\n  package: zz"), `f:20:3: duplicate operator "a/zz": first at f:9:3`},
		"nameless":      {edit("  package: zz\n", ""), `f:9:3: operator "a/": no package`},
		"class":         {edit("operators:", "classes: [Class/x]\noperators:"), `f:8:10: classes: "Class/x" is not an object such as Secret/ns/name or StorageClass//fast`},
		"two faults":    {edit("state: Ready", "state: Fine") + "- {}\n", "f:16:10: state: \"Fine\": must be one of Failed, Missing, OutOfSync, Unpinned, Progressing, Unknown, Ready\nf:24:3: operator \"/\": no namespace\nf:24:3: operator \"/\": no package\nf:24:3: operator \"/\": no state"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readOne("f", []byte(c.in))
			if got := fmt.Sprint(err); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzParseObserved(f *testing.F) {
	f.Add([]byte(observedText))
	f.Add([]byte("apiVersion: quayside.dev/v1alpha1\nkind: Observed\nobservedAt: 2026-01-01T00:00:00+02:00\noperators: [{namespace: \"\\n\", package: ~, state: Ready, applied: [\"\"]}]\n"))
	f.Add([]byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := readOne("f", data)
		if err != nil {
			return
		}
		text := FormatObserved(*first)
		second, err := readOne("f", text)
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		if again := FormatObserved(*second); string(again) != string(text) {
			t.Errorf("%s\nand then\n%s", text, again)
		}
	})
}
