package settings

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/profile"
)

// Owner returns the owner of an operator in spec.owners, or "".
func (w *Workspace) Owner(operator string) string {
	for _, o := range w.Owners {
		if slices.ContainsFunc(o.Operators, func(pattern string) bool { return diag.Matches(pattern, operator) }) {
			return o.Name
		}
	}
	return ""
}

// checkOwners validates spec.owners.
func (v validator) checkOwners() {
	for i, o := range v.w.Owners {
		field := diag.Item("spec.owners", i)
		if strings.TrimSpace(o.Name) == "" {
			v.Addf(field+".name", "missing: specify the name of the owner")
		}
		v.checkOperators(field+".operators", o.Operators)
	}
}

// checkOperators validates operators that are selected by patterns.
func (v validator) checkOperators(field string, patterns []string) {
	for i, name := range patterns {
		at := diag.Item(field, i)
		if v.checkPattern(at, name); strings.Count(name, "/") != 1 && !strings.HasSuffix(name, "*") {
			v.Addf(at, "%q is neither namespace/package nor a pattern with * at the end", name)
		}
	}
}

// AddOperators adds patterns to the operators of a cluster in the text of quayside.yaml, and returns the new
// text. If spec.clusters is not set, it adds an entry for the cluster. It keeps comments, quotes and order. If
// the style of the file or an inherited setting prevents the edit, the error describes how to edit the file by
// hand.
func AddOperators(text []byte, cluster string, patterns []string) ([]byte, error) {
	w, err := Parse(FileName, text)
	if err != nil {
		return nil, err
	}
	out := insertOperators(text, w, cluster, patterns)
	after, err := Parse(FileName, out)
	if err == nil && isExtended(w, after, cluster, patterns) {
		return out, nil
	}
	at := w.At("spec.clusters")
	return nil, diag.Hintf(at, "add it by hand: {name: "+cluster+", operators: "+formatPatterns(patterns)+"}", "YAML style not supported: cannot change the operators of cluster %s in spec.clusters", cluster)
}

// isExtended reports whether after equals before, except for the additional patterns for a cluster.
func isExtended(before, after *Workspace, cluster string, patterns []string) bool {
	want, have := *before, *after
	want.Fields = have.Fields
	isIt := func(c profile.Cluster) bool { return c.Name == cluster }
	i := slices.IndexFunc(have.Clusters, isIt)
	if i < 0 {
		return false
	}
	want.Clusters = slices.Clone(want.Clusters)
	switch j := slices.IndexFunc(want.Clusters, isIt); {
	case !isSet(before, "spec.clusters"):
		want.Clusters = []profile.Cluster{{Name: cluster, Operators: patterns}}
	case j != i:
		return false
	case isSet(before, diag.Item("spec.clusters", i)+".operators"):
		want.Clusters[i].Operators = slices.Concat(want.Clusters[i].Operators, patterns)
	default:
		want.Clusters[i].Operators = patterns
	}
	return bytes.Equal(want.EffectiveJSON(), have.EffectiveJSON())
}

func isSet(w *Workspace, field string) bool {
	_, ok := w.Fields[field]
	return ok
}

// insertOperators returns the text with the patterns inserted. The result is correct only if the file has a
// usual style. The caller must check the result.
func insertOperators(text []byte, w *Workspace, cluster string, patterns []string) []byte {
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	i := slices.IndexFunc(w.Clusters, func(c profile.Cluster) bool { return c.Name == cluster })
	field := diag.Item("spec.clusters", i)
	switch {
	case !isSet(w, "spec"):
		lines = append(lines, "spec:\n", "  clusters:\n", "  - name: "+encodeScalar(cluster)+"\n", "    operators: "+formatPatterns(patterns)+"\n")
	case !isSet(w, "spec.clusters"):
		end, indent := w.At("spec").Line, strings.Repeat(" ", w.At("spec").Col-1)
		if strings.HasPrefix(lines[end-1], "spec:") { // spec contains only comments
			indent = "  "
		}
		for j, line := range lines[end:] {
			if rest := strings.TrimLeft(line, " "); strings.TrimSpace(rest) == "" {
				continue
			} else if len(line)-len(rest) < len(indent) {
				break
			}
			end = w.At("spec").Line + j + 1
		}
		lines = slices.Insert(lines, end, indent+"clusters:\n", indent+"- name: "+encodeScalar(cluster)+"\n", indent+"  operators: "+formatPatterns(patterns)+"\n")
	case i < 0:
	case isSet(w, field+".operators"):
		at := w.At(diag.Item(field+".operators", len(w.Clusters[i].Operators)-1))
		insertAfter(lines, at, "- ", patterns)
	default:
		insertAfter(lines, w.At(field+".name"), "operators: ", []string{formatPatterns(patterns)})
	}
	return []byte(strings.Join(lines, ""))
}

// insertAfter inserts entries after the scalar at a position. In block style, each entry gets its own line,
// indented like the key or item of the scalar. In flow style, the entries are inserted in the line of the scalar.
func insertAfter(lines []string, at diag.Pos, prefix string, entries []string) {
	line := []rune(lines[at.Line-1])
	before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
	if key := regexp.MustCompile(`^( *)(- )?((?:- |["']?name["']?: +))$`).FindStringSubmatch(before); key != nil {
		indent := strings.Repeat(" ", len(before)-len(key[3]))
		for _, e := range entries {
			if prefix == "- " {
				e = encodePattern(e)
			}
			lines[at.Line-1] = strings.TrimSuffix(lines[at.Line-1], "\n") + "\n" + indent + prefix + e + "\n"
		}
		return
	}
	scalar := regexp.MustCompile(`^("([^"\\]|\\.)*"|'[^']*'|[^\s,\]}#]*)`).FindString(rest)
	for _, e := range slices.Backward(entries) {
		if prefix == "- " {
			e = encodePattern(e)
		} else {
			e = prefix + e
		}
		rest = scalar + ", " + e + rest[len(scalar):]
	}
	lines[at.Line-1] = before + rest
}

// formatPatterns returns patterns as a YAML list on one line.
func formatPatterns(patterns []string) string {
	var out []string
	for _, p := range patterns {
		out = append(out, encodePattern(p))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// encodePattern returns a pattern in double quotes, because * has a meaning in YAML.
func encodePattern(p string) string {
	if strings.Contains(p, "*") {
		return `"` + p + `"`
	}
	return encodeScalar(p)
}
