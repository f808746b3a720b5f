package diff

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

func apiRules() []Rule {
	return []Rule{
		{"api.removed", High, "API that the target Kubernetes no longer serves", "the object cannot be applied: the sync fails"},
		{"api.deprecated", Low, "API that a later Kubernetes removes", "the next cluster upgrade has to wait for a new version of the operator"},
	}
}

// api is one row of apiTable.
type api struct {
	deprecated, removed minor // zero where there is none
	instead             string
}

// minor is a Kubernetes version.
type minor struct{ major, minor int }

func (m minor) isZero() bool { return m == minor{} }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

// reached reports whether target is m or later.
func (m minor) reached(target minor) bool {
	return !m.isZero() && (target.major > m.major || target.major == m.major && target.minor >= m.minor)
}

// parseMinor reads "1.34", "v1.34.2" or "1.34+"; ok is false for anything else.
func parseMinor(s string) (minor, bool) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(s), "v"), ".")
	if len(parts) < 2 {
		return minor{}, false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return minor{a, b}, err1 == nil && err2 == nil && a > 0 && b >= 0
}

func apis() map[Ref]api {
	out := map[Ref]api{}
	for _, line := range strings.Split(strings.TrimSpace(apiTable), "\n") {
		f := strings.Fields(line)
		group, version, _ := strings.Cut(f[0], "/")
		if group == "core" {
			group = ""
		}
		var a api
		a.deprecated, _ = parseMinor(f[2])
		a.removed, _ = parseMinor(f[3])
		if f[4] != "-" {
			a.instead = f[4]
		}
		out[Ref{Group: group, Version: version, Kind: f[1]}] = a
	}
	return out
}

// compareAPIs reports objects whose API version the target does not serve, or
// soon will not: those that are new or changed their version, and all of them
// where the target itself moved.
func compareAPIs(c *comparison) {
	target, ok := parseMinor(c.after.KubernetesVersion)
	if !ok {
		c.note("removed and deprecated Kubernetes APIs were not checked: no target Kubernetes version is set")
		return
	}
	old, _ := parseMinor(c.before.KubernetesVersion)
	table := apis()
	look := func(o, was *Object) {
		ref := o.Ref()
		a, listed := table[Ref{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}]
		news := was == nil || was.Ref().Version != ref.Version
		if !listed {
			return
		}
		f := Finding{Field: "apiVersion", After: kobj.Text(o.Content, "apiVersion"), steps: path("apiVersion")}
		if was != nil {
			f.Before = kobj.Text(was.Content, "apiVersion")
		}
		switch {
		case a.removed.reached(target) && (news || !a.removed.reached(old)):
			f.Message = fmt.Sprintf("%s %s is not served since Kubernetes %s%s", f.After, ref.Kind, a.removed, instead(a))
			c.add("api.removed", o, f)
		case !a.removed.reached(target) && a.deprecated.reached(target) && (news || !a.deprecated.reached(old)):
			f.Message = fmt.Sprintf("%s %s is deprecated since Kubernetes %s%s%s", f.After, ref.Kind, a.deprecated, until(a), instead(a))
			c.add("api.deprecated", o, f)
		}
	}
	for _, o := range c.after.order {
		look(o, c.before.byKey[o.Ref().key()])
	}
	had := map[kobj.Key]*Object{}
	for i := range c.before.Resources {
		had[c.before.Resources[i].Ref().key()] = &c.before.Resources[i]
	}
	for i := range c.after.Resources {
		o := &c.after.Resources[i]
		look(o, had[o.Ref().key()])
	}
}

func until(a api) string {
	if a.removed.isZero() {
		return ""
	}
	return " and goes in " + a.removed.String()
}

func instead(a api) string {
	if a.instead == "" {
		return ""
	}
	return "; use " + a.instead
}
