package diff

import (
	_ "embed" // for the go:embed directive
	"fmt"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

func apiRules() []RuleInfo {
	return []RuleInfo{
		{"api.removed", High, "API that the target Kubernetes no longer serves", "the object cannot be applied: the sync fails"},
		{"api.deprecated", Low, "API that a later Kubernetes removes", "the next cluster upgrade needs a newer version of the operator first"},
	}
}

// apiTable lists the API versions that Kubernetes has deprecated or removed. The columns are group
// and version, kind, deprecated since, removed in, and replacement; "-" means none. The sources are
// the APILifecycle methods of k8s.io/api and, for APIs missing there, the Kubernetes deprecated API
// migration guide. A test compares the table with k8s.io/api.
//
//go:embed apis.txt
var apiTable string

// apiLifecycle is a row of apiTable: the Kubernetes versions that deprecate and remove one version of an API.
type apiLifecycle struct {
	deprecated, removed minor  // Kubernetes versions; zero: none so far
	replacement         string // API version to use instead; empty if there is none
}

// minor is a MAJOR.MINOR version of Kubernetes.
type minor struct{ major, minor int }

func (m minor) isZero() bool { return m == minor{} }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

// isReachedBy reports whether target is m or later. It returns false if m is zero.
func (m minor) isReachedBy(target minor) bool {
	return !m.isZero() && (target.major > m.major || target.major == m.major && target.minor >= m.minor)
}

// parseMinor parses the MAJOR.MINOR version at the beginning of s, such as "1.34", "v1.34.2" or
// "1.34+". It returns false if s is invalid.
func parseMinor(s string) (minor, bool) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(s), "v"), ".")
	if len(parts) < 2 {
		return minor{}, false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(strings.TrimRight(parts[1], "+"))
	return minor{a, b}, err1 == nil && err2 == nil && a > 0 && b >= 0
}

// parseAPITable returns the rows of apiTable by API version and kind.
func parseAPITable() map[k8s.Ref]apiLifecycle {
	out := map[k8s.Ref]apiLifecycle{}
	for _, line := range strings.Split(strings.TrimSpace(apiTable), "\n") {
		f := strings.Fields(line)
		var a apiLifecycle
		a.deprecated, _ = parseMinor(f[2])
		a.removed, _ = parseMinor(f[3])
		if f[4] != "-" {
			a.replacement = f[4]
		}
		out[k8s.Ref{APIVersion: strings.TrimPrefix(f[0], "core/"), Kind: f[1]}] = a
	}
	return out
}

// compareAPIs reports objects whose API version is deprecated or no longer served by the target
// Kubernetes. It checks objects that are added or get another API version. It checks unchanged
// objects only if the upgrade of Kubernetes deprecates or removes their API version.
func compareAPIs(c *comparison) {
	target, ok := parseMinor(c.after.KubernetesVersion)
	if !ok {
		c.note("removed and deprecated Kubernetes APIs were not checked: no target Kubernetes version is set")
		return
	}
	old, _ := parseMinor(c.before.KubernetesVersion)
	table := parseAPITable()
	check := func(o, was *Object) {
		kind := o.Key().Kind
		a, listed := table[k8s.Ref{APIVersion: k8s.Text(o.Content, "apiVersion"), Kind: kind}]
		isNew := was == nil || was.version() != o.version()
		if !listed {
			return
		}
		f := Finding{Field: "apiVersion", After: k8s.Text(o.Content, "apiVersion"), path: fieldAt("apiVersion")}
		if was != nil {
			f.Before = k8s.Text(was.Content, "apiVersion")
		}
		switch {
		case a.removed.isReachedBy(target) && (isNew || !a.removed.isReachedBy(old)):
			f.Message = fmt.Sprintf("%s %s is not served since Kubernetes %s%s", f.After, kind, a.removed, replacementText(a))
			c.add("api.removed", o, f)
		case !a.removed.isReachedBy(target) && a.deprecated.isReachedBy(target) && (isNew || !a.deprecated.isReachedBy(old)):
			f.Message = fmt.Sprintf("%s %s is deprecated since Kubernetes %s%s%s", f.After, kind, a.deprecated, removalText(a), replacementText(a))
			c.add("api.deprecated", o, f)
		}
	}
	for _, o := range c.after.order {
		check(o, c.before.byKey[o.Key()])
	}
	before := map[k8s.Key]*Object{}
	for i := range c.before.Resources {
		before[c.before.Resources[i].Key()] = &c.before.Resources[i]
	}
	for i := range c.after.Resources {
		o := &c.after.Resources[i]
		check(o, before[o.Key()])
	}
}

func removalText(a apiLifecycle) string {
	if a.removed.isZero() {
		return ""
	}
	return " and removed in " + a.removed.String()
}

func replacementText(a apiLifecycle) string {
	if a.replacement == "" {
		return ""
	}
	return "; use " + a.replacement
}
