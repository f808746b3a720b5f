package diag

import (
	"slices"
	"testing"
)

// TestAcknowledge covers what an acknowledgement is for: a code, a subject or a file,
// and days up to the last one.
func TestAcknowledge(t *testing.T) {
	w := Warning{Pos: Pos{File: "subscriptions/etcd.yaml", Line: 3}, Code: "orphan", Subject: "etcd/etcd"}
	for name, c := range map[string]struct {
		known Acknowledgement
		want  bool
	}{
		"ok/code":           {Acknowledgement{Code: "orphan"}, true},
		"ok/subject":        {Acknowledgement{Code: "orphan", Subject: "etcd/etcd"}, true},
		"ok/beginning":      {Acknowledgement{Code: "orphan", Subject: "etcd/*"}, true},
		"ok/file":           {Acknowledgement{Code: "orphan", Subject: "subscriptions/etcd.yaml"}, true},
		"ok/last day":       {Acknowledgement{Code: "orphan", Expires: "2026-11-23"}, true},
		"error/other code":  {Acknowledgement{Code: "held"}, false},
		"error/other":       {Acknowledgement{Code: "orphan", Subject: "etcd"}, false},
		"error/expired":     {Acknowledgement{Code: "orphan", Expires: "2026-11-22"}, false},
		"error/no wildcard": {Acknowledgement{Code: "orphan", Subject: "*/etcd"}, false},
	} {
		ws := []Warning{w}
		got := Acknowledge(ws, []Acknowledgement{c.known}, "2026-11-23")
		if got[0].Acknowledged != c.want || ws[0].Acknowledged {
			t.Errorf("%s: got %v, and the argument %v", name, got[0].Acknowledged, ws[0].Acknowledged)
		}
		if again := Acknowledge(got, nil, ""); again[0].Acknowledged != c.want {
			t.Errorf("%s: what was acknowledged is so no more", name)
		}
		stale := len(Stale(Resolving, ws, []Acknowledgement{c.known}, "2026-11-23")) > 0
		if stale == c.want {
			t.Errorf("%s: stale %v", name, stale)
		}
		if got := Stale(Rendering, nil, []Acknowledgement{c.known}, "2026-11-23"); len(got) > 0 {
			t.Errorf("%s: told at the wrong step: %v", name, got)
		}
	}
}

// TestCodes has each code once, by step and name: "there is no such step" would never
// be told.
func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	steps := []Step{Resolving, Rendering, Otherwise}
	last := Code{Step: Resolving}
	for _, c := range Codes() {
		if seen[c.ID] || c.ID == "" || c.What == "" || !slices.Contains(steps, c.Step) {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		if slices.Index(steps, c.Step) < slices.Index(steps, last.Step) || c.Step == last.Step && c.ID <= last.ID {
			t.Errorf("%q stands behind %q", c.ID, last.ID)
		}
		last = c
	}
}
