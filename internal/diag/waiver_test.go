package diag

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelects(t *testing.T) {
	s := Subject{Rule: "pods.privileged", Operator: "ops/etcd", Objects: []string{"Deployment ops/etcd"}, Field: "m securityContext.privileged", Container: "m", Cluster: "prod-1"}
	for name, c := range map[string]struct {
		waiver Waiver
		want   bool
	}{
		"ok/rule":             {Waiver{Rule: "pods.privileged"}, true},
		"ok/family":           {Waiver{Rule: "pods.*"}, true},
		"ok/all":              {Waiver{Rule: "pods.*", Operator: "ops/etcd", Object: s.Objects[0], Field: s.Field, Container: "m", Clusters: []string{"c", "prod-*"}}, true},
		"ok/beginning":        {Waiver{Rule: "pods.*", Object: "Deployment ops/*"}, true},
		"ok/several fields":   {Waiver{Rule: "pods.*", Field: "a, " + s.Field}, true},
		"error/rule":          {Waiver{Rule: "pods.host-port"}, false},
		"error/operator":      {Waiver{Rule: "pods.*", Operator: "ops/etc"}, false},
		"error/object":        {Waiver{Rule: "pods.*", Object: "etcd"}, false},
		"error/field":         {Waiver{Rule: "pods.*", Field: "*"}, false},
		"error/container":     {Waiver{Rule: "pods.*", Container: "n"}, false},
		"error/vulnerability": {Waiver{Rule: "pods.*", Vulnerability: "CVE-1"}, false},
		"error/cluster":       {Waiver{Rule: "pods.*", Clusters: []string{"prod"}}, false},
	} {
		if got := c.waiver.Selects(s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestReview checks the warnings about a waiver on the days around its last day.
func TestReview(t *testing.T) {
	w := Waiver{Rule: "pods.*", Operator: "ops/etcd", Object: "Deployment ops/etcd", Expires: "2026-12-31", Pos: Pos{File: "quayside.yaml", Line: 9, Col: 7}}
	const at = "quayside.yaml:9:7: waiver of pods.* (operator ops/etcd, object Deployment ops/etcd) "
	for _, c := range []struct {
		today   string
		used    bool
		objects []string
		want    string
	}{
		{"2026-12-16", true, nil, "[]"},
		{"2026-12-17", true, nil, "[" + at + "expires on 2026-12-31, in 14 days: renew or delete it]"},
		{"2026-12-31", true, nil, "[" + at + "expires on 2026-12-31, in 0 days: renew or delete it]"},
		{"2027-01-01", true, nil, "[" + at + "expired on 2026-12-31: renew or delete it]"},
		{"2027-01-01", false, nil, "[" + at + "expired on 2026-12-31: renew or delete it]"},
		{"2026-12-17", false, nil, "[" + at + "matches no finding or warning: delete it]"},
		{"2026-12-17", false, []string{"Deployment ops/etcd-2", "Service x/y"}, "[" + at + "matches no finding or warning: delete it (did you mean \"Deployment ops/etcd-2\"?)]"},
		{"", true, nil, "[]"},
	} {
		if d := cmp.Diff(c.want, fmt.Sprint(Review([]Waiver{w}, []bool{c.used}, [][]string{c.objects}, c.today))); d != "" {
			t.Errorf("%s, used %v: -want +got\n%s", c.today, c.used, d)
		}
	}
}

// TestWarnings waives a warning by its code, subject or file, until the last day of the waiver.
func TestWarnings(t *testing.T) {
	w := Warning{Pos: Pos{File: "subscriptions/etcd.yaml", Line: 3}, Code: "orphan", Subject: "etcd/etcd"}
	for name, c := range map[string]struct {
		waiver Waiver
		want   bool
	}{
		"ok/code":           {Waiver{Rule: "orphan", Expires: "2027-11-23"}, true},
		"ok/subject":        {Waiver{Rule: "orphan", Object: "etcd/etcd", Expires: "2027-11-23"}, true},
		"ok/beginning":      {Waiver{Rule: "orphan", Object: "etcd/*", Expires: "2027-11-23"}, true},
		"ok/file":           {Waiver{Rule: "orphan", Object: "subscriptions/etcd.yaml", Expires: "2027-11-23"}, true},
		"error/other code":  {Waiver{Rule: "held", Expires: "2027-11-23"}, false},
		"error/other":       {Waiver{Rule: "orphan", Object: "etcd", Expires: "2027-11-23"}, false},
		"error/expired":     {Waiver{Rule: "orphan", Expires: "2026-11-22"}, false},
		"error/no wildcard": {Waiver{Rule: "orphan", Object: "*/etcd", Expires: "2027-11-23"}, false},
	} {
		ws := []Warning{w}
		got := MarkWaived(ws, []Waiver{c.waiver}, "2026-11-23")
		if got[0].Waived != c.want || ws[0].Waived {
			t.Errorf("%s: got %v, and the argument %v", name, got[0].Waived, ws[0].Waived)
		}
		if again := MarkWaived(got, nil, ""); again[0].Waived != c.want {
			t.Errorf("%s: a waived warning is no longer waived", name)
		}
		if named := len(ReviewWarnings(Resolving, ws, []Waiver{c.waiver}, "2026-11-23")) > 0; named == c.want {
			t.Errorf("%s: named %v", name, named)
		}
		if got := ReviewWarnings(Rendering, nil, []Waiver{c.waiver}, "2026-11-23"); len(got) > 0 {
			t.Errorf("%s: named by the wrong step: %v", name, got)
		}
	}
}
