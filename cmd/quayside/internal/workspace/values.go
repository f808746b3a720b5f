package workspace

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// valueWarnings returns warnings about values in declarations: values that have no effect because the bundle is
// not a chart, and values that look like secrets.
func valueWarnings(set *declare.Set, lock *lockfile.File) []diag.Warning {
	var out []diag.Warning
	for _, s := range set.Subscriptions {
		p, ok := lock.Pin(s.Namespace, s.Package)
		if !ok || s.ChartValues == nil {
			continue
		}
		warnFor := func(pos diag.Pos, code, format string, args ...any) {
			out = append(out, diag.Warning{Pos: pos, Subject: p.Key(), Code: code, Msg: fmt.Sprintf(format, args...)})
		}
		if p.Template == nil {
			warnFor(s.ValueAt(""), "values-ignored", "%s is not a Helm chart: values have no effect", p.Bundle)
			continue
		}
		for _, path := range secretPathsIn(s.ChartValues) {
			warnFor(s.ValueAt(path), "secret-value", "the value %s looks like a secret: declarations and lock store it as plain text", path)
		}
	}
	return out
}

// clusterValueWarnings returns warnings about values of clusters that look like secrets.
func clusterValueWarnings(w *settings.Workspace) []diag.Warning {
	var out []diag.Warning
	for i, c := range w.Clusters {
		for _, operator := range slices.Sorted(maps.Keys(c.HelmValues)) {
			for _, path := range secretPathsIn(c.HelmValues[operator]) {
				at := w.At(diag.Member(diag.Item("spec.clusters", i)+".helmValues", operator) + "." + path)
				out = append(out, diag.Warning{
					Pos: at, Subject: operator, Code: "secret-value",
					Msg: fmt.Sprintf("the value %s looks like a secret: %s stores it as plain text", path, settings.FileName),
				})
			}
		}
	}
	return out
}

// secretPathsIn returns the result of secretPaths for values in JSON.
func secretPathsIn(raw []byte) []string {
	var values map[string]any
	if json.Unmarshal(raw, &values) != nil {
		return nil // not a mapping: reported when the chart is rendered
	}
	return secretPaths("", values)
}

// secretPaths returns the paths of values that look like secrets, sorted. These are texts whose key ends with
// a word such as "password", except references to variables.
func secretPaths(path string, values map[string]any) []string {
	secret := regexp.MustCompile(`(?i)(password|passwd|passphrase|token|api_?key|access_?key|secret_?key|private_?key|client_?secret)$`)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		switch v := values[key].(type) {
		case map[string]any:
			out = append(out, secretPaths(at, v)...)
		case string:
			if v != "" && !strings.HasPrefix(v, "$") && secret.MatchString(key) {
				out = append(out, at)
			}
		}
	}
	return out
}
