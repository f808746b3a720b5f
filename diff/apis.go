package diff

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func apiRules() []Rule {
	return []Rule{
		{"api.removed", High, "API that the target Kubernetes no longer serves", "the object cannot be applied: the sync fails"},
		{"api.deprecated", Low, "API that a later Kubernetes removes", "the next cluster upgrade needs a newer version of the operator first"},
	}
}

// api is a row of apiTable.
type api struct {
	deprecated, removed minor // zero: not deprecated, not removed
	instead             string
}

// minor is a Kubernetes version.
type minor struct{ major, minor int }

func (m minor) isZero() bool { return m == minor{} }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

// reached reports whether target is m or later. It is false for the zero value of m.
func (m minor) reached(target minor) bool {
	return !m.isZero() && (target.major > m.major || target.major == m.major && target.minor >= m.minor)
}

// parseMinor parses "1.34", "v1.34.2" or "1.34+"; ok is false for anything else.
func parseMinor(s string) (minor, bool) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(s), "v"), ".")
	if len(parts) < 2 {
		return minor{}, false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return minor{a, b}, err1 == nil && err2 == nil && a > 0 && b >= 0
}

func servedAPIs() map[k8s.Ref]api {
	out := map[k8s.Ref]api{}
	for _, line := range strings.Split(strings.TrimSpace(apiTable), "\n") {
		f := strings.Fields(line)
		var a api
		a.deprecated, _ = parseMinor(f[2])
		a.removed, _ = parseMinor(f[3])
		if f[4] != "-" {
			a.instead = f[4]
		}
		out[k8s.Ref{APIVersion: strings.TrimPrefix(f[0], "core/"), Kind: f[1]}] = a
	}
	return out
}

// compareAPIs reports objects at an API version that the target does not serve or
// deprecates: objects that are new or changed their version, and all others if an upgrade
// of the target itself deprecates or removes the version.
func compareAPIs(c *comparison) {
	target, ok := parseMinor(c.after.KubernetesVersion)
	if !ok {
		c.note("removed and deprecated Kubernetes APIs were not checked: no target Kubernetes version is set")
		return
	}
	old, _ := parseMinor(c.before.KubernetesVersion)
	table := servedAPIs()
	look := func(o, was *Object) {
		kind := o.Key().Kind
		a, listed := table[k8s.Ref{APIVersion: k8s.Text(o.Content, "apiVersion"), Kind: kind}]
		news := was == nil || was.version() != o.version()
		if !listed {
			return
		}
		f := Finding{Field: "apiVersion", After: k8s.Text(o.Content, "apiVersion"), steps: stepPath("apiVersion")}
		if was != nil {
			f.Before = k8s.Text(was.Content, "apiVersion")
		}
		switch {
		case a.removed.reached(target) && (news || !a.removed.reached(old)):
			f.Message = fmt.Sprintf("%s %s is not served since Kubernetes %s%s", f.After, kind, a.removed, replacementText(a))
			c.add("api.removed", o, f)
		case !a.removed.reached(target) && a.deprecated.reached(target) && (news || !a.deprecated.reached(old)):
			f.Message = fmt.Sprintf("%s %s is deprecated since Kubernetes %s%s%s", f.After, kind, a.deprecated, removalText(a), replacementText(a))
			c.add("api.deprecated", o, f)
		}
	}
	for _, o := range c.after.order {
		look(o, c.before.byKey[o.Key()])
	}
	had := map[k8s.Key]*Object{}
	for i := range c.before.Resources {
		had[c.before.Resources[i].Key()] = &c.before.Resources[i]
	}
	for i := range c.after.Resources {
		o := &c.after.Resources[i]
		look(o, had[o.Key()])
	}
}

func removalText(a api) string {
	if a.removed.isZero() {
		return ""
	}
	return " and removed in " + a.removed.String()
}

func replacementText(a api) string {
	if a.instead == "" {
		return ""
	}
	return "; use " + a.instead
}
