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
	"github.com/quayside/quayside/lockfile"
)

// valueWarnings returns warnings about values of declarations that have no effect, because the bundle has no
// templates, or that look like secrets.
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
		var values map[string]any
		if json.Unmarshal(s.ChartValues, &values) != nil {
			continue // not a mapping: reported when the chart is rendered
		}
		for _, path := range secretPaths("", values) {
			warnFor(s.ValueAt(path), "secret-value", "the value %s looks like a secret: declarations and lock store it as plain text", path)
		}
	}
	return out
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
