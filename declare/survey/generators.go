package survey

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/k8s"
)

// maxNested is the maximum depth of nested generators. Argo CD permits less.
const maxNested = 5

// generator evaluates the generators of one ApplicationSet.
type generator struct {
	repo    *repository
	foreign func(url string) bool
	renderer
}

// generate returns the parameters that a generator produces, one for each Application. before are
// the parameters of the preceding generator in a matrix.
func (g generator) generate(spec map[string]any, before params, depth int) ([]params, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("generators are nested deeper than %d levels", maxNested)
	}
	var out []params
	var err error
	switch {
	case spec["list"] != nil:
		out, err = g.list(k8s.Map(spec, "list"), before)
	case spec["git"] != nil:
		out, err = g.git(k8s.Map(spec, "git"), before)
	case spec["matrix"] != nil:
		out, err = g.matrix(k8s.Map(spec, "matrix"), before, depth)
	case spec["merge"] != nil:
		out, err = g.merge(k8s.Map(spec, "merge"), before, depth)
	case spec["clusters"] != nil:
		values, _ := g.object(k8s.Map(spec, "clusters", "values"), params{unknown: clusterParams()})
		out = []params{{values: map[string]any{"values": values}, unknown: clusterParams()}}
	default:
		out = []params{{unknown: []string{"*"}}} // the parameters are known only to a server
	}
	if err == nil && len(out) > maxApplied {
		err = fmt.Errorf("more than %d Applications", maxApplied)
	}
	return selectParams(k8s.Map(spec, "selector"), out), err
}

// clusterParams returns the names of the parameters of a clusters generator. The values of these parameters are
// in Secrets of Argo CD.
func clusterParams() []string {
	return []string{"name", "nameNormalized", "server", "project", "metadata"}
}

// selectParams returns the parameters that match a selector. If a parameter is unknown, it counts
// as a match.
func selectParams(selector map[string]any, list []params) []params {
	matcher, valid := k8s.SelectorOf(selector)
	if !valid {
		return list
	}
	return slices.DeleteFunc(list, func(p params) bool { return len(p.unknown) == 0 && !matcher.Matches(labelMap(p.flatten())) })
}

type labelMap map[string]string

func (m labelMap) Has(name string) bool              { _, has := m[name]; return has }
func (m labelMap) Get(name string) string            { return m[name] }
func (m labelMap) Lookup(name string) (string, bool) { v, has := m[name]; return v, has }

func (g generator) list(spec map[string]any, before params) ([]params, error) {
	elements, _ := spec["elements"].([]any)
	if text, _ := spec["elementsYaml"].(string); text != "" {
		v, err := g.object(text, before)
		if err != nil {
			return nil, err
		}
		var more []any
		if text, _ = v.(string); strings.Contains(text, unknownText) {
			return nil, errors.New("elementsYaml is unknown")
		}
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			return nil, fmt.Errorf("elementsYaml: %w", err)
		}
		elements = append(elements, more...)
	}
	var out []params
	for _, e := range elements {
		v, err := g.object(e, before)
		if err != nil {
			return nil, err
		}
		if fields, isMap := v.(map[string]any); isMap {
			out = append(out, params{values: fields})
		}
	}
	return out, nil
}

// git returns the parameters for the directories or files of the repository that a git generator
// selects.
func (g generator) git(spec map[string]any, before params) ([]params, error) {
	v, err := g.object(k8s.Without(spec, "template"), before)
	if err != nil {
		return nil, err
	}
	spec, _ = v.(map[string]any)
	if url := k8s.Text(spec, "repoURL"); url != "" && !strings.Contains(url, unknownText) && g.foreign(url) {
		return []params{{unknown: []string{"*"}}}, nil
	}
	values, prefix := k8s.Map(spec, "values"), k8s.Text(spec, "pathParamPrefix")
	var out []params
	for _, dir := range g.matchPaths(spec["directories"], g.repo.dirsBelow, matchDir) {
		p := g.pathParams(dir, "", prefix)
		out = append(out, params{values: g.withValues(p, values)})
	}
	for _, file := range g.matchPaths(spec["files"], g.repo.filesBelow, matchGlob) {
		contents, err := parseParams(file, g.repo.read(file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, content := range contents {
			p := k8s.Merge(content, g.pathParams(path.Dir(file), path.Base(file), prefix))
			out = append(out, params{values: g.withValues(p, values)})
		}
	}
	return out, nil
}

// withValues returns p with the additional parameter "values": the field "values" of the generator, in which
// texts are evaluated with the parameters in p.
func (g generator) withValues(p, values map[string]any) map[string]any {
	if len(values) == 0 {
		return p
	}
	v, _ := g.object(values, params{values: p})
	return k8s.Merge(p, map[string]any{"values": v})
}

// matchPaths returns the paths that the items of a git generator include and do not exclude,
// sorted. below returns the candidates below a directory.
func (g generator) matchPaths(items any, below func(dir string) []string, match func(pattern, name string) bool) []string {
	list, _ := items.([]any)
	found, excluded := map[string]bool{}, map[string]bool{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		pattern := path.Clean(strings.TrimPrefix(k8s.Text(fields, "path"), "/"))
		out := found
		if exclude, _ := fields["exclude"].(bool); exclude {
			out = excluded
		}
		pattern = strings.ReplaceAll(pattern, unknownText, "*")
		for _, name := range below(fixedDir(pattern)) {
			if match(pattern, name) {
				out[name] = true
			}
		}
	}
	maps.DeleteFunc(found, func(name string, _ bool) bool { return excluded[name] })
	return slices.Sorted(maps.Keys(found))
}

// matchDir reports whether a directory matches a pattern of a git directory generator.
func matchDir(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched && name != "."
}

// fixedDir returns the leading directories of a path pattern that contain no variable part.
func fixedDir(name string) string {
	name = strings.TrimPrefix(name, "/")
	if i := strings.IndexAny(name, "*?[{$"+unknownText); i >= 0 {
		name = name[:i]
		name = name[:strings.LastIndex(name, "/")+1]
	}
	return path.Clean(name)
}

func (r *repository) dirsBelow(dir string) []string {
	var out []string
	if r.isDir(dir) {
		r.walkDirs(dir, func(name string) { out = append(out, name) })
	}
	return out
}

func (r *repository) filesBelow(dir string) []string {
	if r.read(dir) != nil {
		return []string{dir}
	}
	var out []string
	r.walk(dir, func(name string) bool {
		out = append(out, name)
		return len(out) < maxFiles
	})
	return out
}

// pathParams returns the parameters that a git generator creates for a directory or, if file is not
// empty, for this file in the directory.
func (g generator) pathParams(dir, file, prefix string) map[string]any {
	segments := []any{}
	for step := range strings.SplitSeq(dir, "/") {
		segments = append(segments, step)
	}
	about := map[string]any{"path": dir, "basename": path.Base(dir), "basenameNormalized": normalizeName(path.Base(dir)), "segments": segments}
	if file != "" {
		about["filename"], about["filenameNormalized"] = file, normalizeName(file)
	}
	out := map[string]any{"path": about}
	if !g.goTemplate {
		out = map[string]any{"path": dir}
		for name, v := range about {
			if name != "path" && name != "segments" {
				out["path."+name] = v
			}
		}
		for i, step := range segments {
			out["path["+strconv.Itoa(i)+"]"] = step
		}
	}
	if prefix == "" {
		return out
	}
	if g.goTemplate {
		return map[string]any{prefix: out}
	}
	prefixed := map[string]any{}
	for name, v := range out {
		prefixed[prefix+"."+name] = v
	}
	return prefixed
}

// parseParams returns the parameters in a file, which contains an object or a list of objects.
func parseParams(file string, data []byte) ([]map[string]any, error) {
	if data == nil {
		return nil, errors.New("cannot be read")
	}
	if _, err := documents(file, data); err != nil { // rejects, for example, aliases that expand to too much
		if _, err := documents(file, slices.Concat([]byte("list:\n"), data)); err != nil {
			return nil, err
		}
	}
	var list []map[string]any
	if yaml.Unmarshal(data, &list) == nil {
		return list, nil
	}
	one := map[string]any{}
	err := yaml.Unmarshal(data, &one)
	return []map[string]any{one}, err
}

// matrix returns all combinations of the parameters of two generators. The second generator can use
// the parameters of the first.
func (g generator) matrix(spec map[string]any, before params, depth int) ([]params, error) {
	out := []params{before}
	list, _ := spec["generators"].([]any)
	for _, item := range list {
		fields, _ := item.(map[string]any)
		var next []params
		for _, p := range out {
			more, err := g.generate(fields, p, depth+1)
			if err != nil {
				return nil, err
			}
			for _, q := range more {
				next = append(next, p.with(q))
			}
			if len(next) > maxApplied {
				return nil, fmt.Errorf("more than %d Applications", maxApplied)
			}
		}
		out = next
	}
	return out, nil
}

// merge returns the parameter sets of the first generator. It extends each of them by the matching sets of the
// other generators: the sets with the same values for the merge keys.
func (g generator) merge(spec map[string]any, before params, depth int) ([]params, error) {
	keys, _ := spec["mergeKeys"].([]any)
	list, _ := spec["generators"].([]any)
	key := func(p params) (string, bool) {
		flat, out := p.flatten(), []string{}
		for _, k := range keys {
			name, _ := k.(string)
			if p.isUnknown(name) {
				return "", false
			}
			out = append(out, flat[name])
		}
		return strings.Join(out, unknownText), true
	}
	var out []params
	for i, item := range list {
		fields, _ := item.(map[string]any)
		more, err := g.generate(fields, before, depth+1)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out = more
			continue
		}
		byKey := map[string]params{}
		for _, q := range more {
			if k, known := key(q); known {
				byKey[k] = q
			}
		}
		for i, p := range out {
			k, known := key(p)
			if q, has := byKey[k]; known && has {
				out[i] = p.with(q)
			}
			if !known { // any of them may match
				out[i].unknown = append(out[i].unknown, "*")
			}
		}
	}
	return out, nil
}
