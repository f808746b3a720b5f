package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// checkDeterminism returns an error if the objects of two renderings differ.
func (j *job) checkDeterminism(first, second map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if first[name] == second[name] {
			continue
		}
		a, err := parseDocuments(name, first[name], ofTemplate, j.watch)
		if err != nil {
			return err
		}
		b, err := parseDocuments(name, second[name], ofTemplate, j.watch)
		if err != nil {
			return err
		}
		if len(a) != len(b) {
			return &wire.Error{Path: name, Msg: fmt.Sprintf("not deterministic: the template renders %d objects, and %d when it is rendered again", len(a), len(b))}
		}
		for i := range a {
			if err := j.compareManifests(a[i], b[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) compareManifests(a, b manifest) error {
	var x, y any
	if json.Unmarshal(a.data, &x) != nil || json.Unmarshal(b.data, &y) != nil {
		return nil
	}
	fields := differences(nil, "", x, y)
	if len(fields) == 0 {
		return nil
	}
	msg := fmt.Sprintf("not deterministic: %s: %s differs each time the chart is rendered", a.head, fields[0])
	if n := len(fields) - 1; n > 0 {
		msg += fmt.Sprintf(", as do %d other fields", n)
	}
	out := &wire.Error{Path: a.source, Msg: msg}
	if value := j.likelyValue(a, fields[0]); value != "" {
		out.Hint = "set the value " + value
	}
	return out
}

// differences appends to out the JSON pointers of the fields in which two values differ, sorted.
func differences(out []string, at string, x, y any) []string {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			return append(out, at)
		}
		keys := maps.Collect(maps.All(x))
		maps.Copy(keys, y)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			out = differences(out, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(k), x[k], y[k])
		}
		return out
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return append(out, at)
		}
		for i := range x {
			out = differences(out, fmt.Sprintf("%s/%d", at, i), x[i], y[i])
		}
		return out
	}
	if !reflect.DeepEqual(x, y) {
		out = append(out, at)
	}
	return out
}

var (
	valuePath = regexp.MustCompile(`\.Values((?:\.\w+)+)`)
	generates = regexp.MustCompile(`\b(gen(CA|SelfSignedCert|SignedCert|PrivateKey)\w*|rand\w+|uuidv4|now|htpasswd|bcrypt|encryptAES)\b`)
	certField = regexp.MustCompile(`(?i)ca-?bundle|cert|tls|\bca\b|\.crt|\.key|\.pem`)
)

// likelyValues returns patterns for the names of values that usually replace a generated field, the most
// likely first. cert is true for a field with a certificate or a key.
func likelyValues(cert bool) []*regexp.Regexp {
	patterns := []string{
		`(?i)(^|\.)existing\w*secret\w*$`, `(?i)(admin)?password$`, `(?i)(^|\.)\w*secret(name|ref)?$`, `(?i)(token|key|salt)$`, `(?i)(^|\.)(rollme|timestamp)\w*$`,
	}
	if cert {
		patterns = append([]string{
			`(?i)cert-?manager\.(enabled?|create)$`, `(?i)(enable|use)\w*cert-?manager$`, `(?i)cert-?manager$`,
			`(?i)(existing|custom)\w*(cert|secret|tls|ca)\w*$`, `(?i)ca-?bundle$`, `(?i)(^|\.)(ca|cert|tls)\w*\.?(crt|cert|file|pem)?$`,
		}, patterns...)
	}
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(p)
	}
	return out
}

// likelyValue returns the path of a chart value that probably makes a field deterministic if the user sets it, or
// "". The path must occur in the template of the object, or in a template of the same chart that generates values.
func (j *job) likelyValue(m manifest, field string) string {
	mentioned := map[string]bool{}
	for name, text := range j.sources {
		if name != m.source && !(generates.MatchString(text) && chartOf(name) == chartOf(m.source)) {
			continue
		}
		for _, match := range valuePath.FindAllStringSubmatch(text, -1) {
			mentioned[valuesPrefix(name)+strings.TrimPrefix(match[1], ".")] = true
		}
	}
	paths := slices.Sorted(maps.Keys(mentioned))
	slices.SortStableFunc(paths, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
	cert := certField.MatchString(field) || certField.MatchString(m.head.String())
	for _, pattern := range likelyValues(cert) {
		for _, p := range paths {
			if pattern.MatchString(p) && exists(j.merged, strings.Split(p, ".")) {
				return p
			}
		}
	}
	return ""
}

// chartOf returns the path of the chart that has a template.
func chartOf(template string) string {
	before, _, _ := strings.Cut(template, "/templates/")
	return before
}

// valuesPrefix returns the path, in the values, of the subchart that contains a template: "grafana." for
// "stack/charts/grafana/templates/secret.yaml".
func valuesPrefix(template string) string {
	var b strings.Builder
	for i, part := range strings.Split(chartOf(template), "/charts/") {
		if i > 0 {
			b.WriteString(path.Base(part) + ".")
		}
	}
	return b.String()
}

// exists reports whether values contains the path at. The last key of the path may be missing.
func exists(values map[string]any, at []string) bool {
	if len(at) <= 1 {
		return true
	}
	below, ok := asMap(values[at[0]])
	return ok && exists(below, at[1:])
}

func asMap(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case common.Values:
		return v, true
	}
	return nil, false
}
