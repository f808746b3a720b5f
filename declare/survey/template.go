package survey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
	"github.com/quayside/quayside/internal/k8s"
	"sigs.k8s.io/yaml"
)

// unknownText stands for the value of a parameter that is known only to a cluster or a server.
const unknownText = "\x00"

// IsKnown reports whether all values in v are known offline. Values that only a cluster or a server
// knows are represented by unknownText.
func IsKnown(v any) bool {
	text, err := json.Marshal(v)
	return err == nil && !bytes.Contains(text, []byte(`\u0000`))
}

// params are the parameters of one Application of an ApplicationSet.
type params struct {
	values  map[string]any
	unknown []string // names of parameters without a known value, or of maps that contain such; "*": all parameters not in values
}

// with returns the parameters of p and q. If both have a parameter, the value in q takes precedence.
func (p params) with(q params) params {
	out := params{values: k8s.Merge(p.values, q.values)}
	for _, name := range slices.Concat(p.unknown, q.unknown) {
		if _, known := out.values[name]; !known && !slices.Contains(out.unknown, name) {
			out.unknown = append(out.unknown, name)
		}
	}
	return out
}

// flatten returns the parameters by the names that templates use, such as "path.basename" or
// "labels.tier".
func (p params) flatten() map[string]string {
	out := map[string]string{}
	var add func(name string, v any)
	add = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				add(strings.TrimPrefix(name+"."+key, "."), item)
			}
		case []any:
			for i, item := range v {
				add(fmt.Sprintf("%s.%d", name, i), item)
			}
		case string:
			out[name] = v
		case nil:
		default:
			data, err := json.Marshal(v)
			if err == nil {
				out[name] = string(data)
			}
		}
	}
	add("", p.values)
	return out
}

// isUnknown reports whether the value of a parameter is unknown.
func (p params) isUnknown(name string) bool {
	return slices.ContainsFunc(p.unknown, func(u string) bool { return u == "*" || name == u || strings.HasPrefix(name, u+".") })
}

// renderer evaluates the templates of an ApplicationSet.
type renderer struct {
	goTemplate bool
	options    []string
}

// object returns a copy of v with every text evaluated.
func (t renderer) object(v any, p params) (any, error) {
	flat := p.flatten()
	var faults []error
	var visit func(v any) any
	visit = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for key, item := range v {
				out[t.text(key, p, flat, &faults)] = visit(item)
			}
			return out
		case []any:
			out := make([]any, 0, len(v))
			for _, item := range v {
				out = append(out, visit(item))
			}
			return out
		case string:
			return t.text(v, p, flat, &faults)
		default:
			return v
		}
	}
	return visit(v), errors.Join(faults...)
}

// text evaluates a text. If that is impossible, it adds a fault and returns unknownText.
func (t renderer) text(text string, p params, flat map[string]string, faults *[]error) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	if !t.goTemplate {
		return fillPlaceholders(text, p, flat)
	}
	out, err := runTemplate(text, p, t.options)
	if err != nil {
		*faults = append(*faults, err)
		return unknownText
	}
	return out
}

// fillPlaceholders replaces each {{name}}. As in Argo CD, a placeholder without a parameter stays
// unchanged.
func fillPlaceholders(text string, p params, flat map[string]string) string {
	placeholder := regexp.MustCompile(`\{\{([^{}]*)\}\}`)
	return placeholder.ReplaceAllStringFunc(text, func(tag string) string {
		name := strings.TrimSpace(strings.Trim(tag, "{}"))
		if v, known := flat[name]; known {
			return v
		}
		if p.isUnknown(name) {
			return unknownText
		}
		return tag
	})
}

// maxTemplate is the maximum size of a template in bytes.
const maxTemplate = 64 << 10

// runTemplate evaluates a Go template. It rejects loops and nested templates, so that the length of the
// template limits the time.
func runTemplate(text string, p params, options []string) (string, error) {
	if len(text) > maxTemplate {
		return "", fmt.Errorf("the template has more than %d bytes", maxTemplate)
	}
	t, err := template.New("").Funcs(templateFuncs()).Parse(text)
	if err != nil {
		return "", err
	}
	if t.Tree == nil || t.Root == nil {
		return "", nil
	}
	if len(t.Templates()) > 1 {
		return "", errors.New("nested templates are not evaluated")
	}
	if err := checkNodes(t.Root, p); err != nil {
		return "", err
	}
	for _, o := range options {
		if o == "missingkey=error" || o == "missingkey=default" || o == "missingkey=zero" || o == "missingkey=invalid" {
			t.Option(o)
		}
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p.values); err != nil {
		return "", err
	}
	return strings.ReplaceAll(out.String(), "<no value>", unknownText), nil
}

// checkNodes replaces each action that uses an unknown parameter with unknownText. It returns an
// error for loops and nested templates.
func checkNodes(list *parse.ListNode, p params) error {
	uses := func(n parse.Node) bool {
		return slices.ContainsFunc(p.unknown, func(name string) bool {
			if name == "*" {
				return regexp.MustCompile(`\.[A-Za-z_]`).MatchString(n.String())
			}
			return regexp.MustCompile(`\.` + regexp.QuoteMeta(name) + `\b`).MatchString(n.String())
		})
	}
	if list == nil {
		return nil
	}
	for i, n := range list.Nodes {
		var branch *parse.BranchNode
		switch n := n.(type) {
		case *parse.RangeNode:
			return errors.New("loops are not evaluated")
		case *parse.TemplateNode:
			return errors.New("nested templates are not evaluated")
		case *parse.IfNode:
			branch = &n.BranchNode
		case *parse.WithNode:
			branch = &n.BranchNode
		case *parse.ActionNode:
			if uses(n) {
				list.Nodes[i] = &parse.TextNode{NodeType: parse.NodeText, Text: []byte(unknownText)}
			}
			continue
		default:
			continue
		}
		if uses(branch.Pipe) {
			list.Nodes[i] = &parse.TextNode{NodeType: parse.NodeText, Text: []byte(unknownText)}
			continue
		}
		if err := errors.Join(checkNodes(branch.List, p), checkNodes(branch.ElseList, p)); err != nil {
			return err
		}
	}
	return nil
}

// templateFuncs returns the functions of Argo CD's templates. It omits functions whose result is
// not always the same, and functions whose time or output depends on the value of an argument.
func templateFuncs() template.FuncMap {
	out := sprig.HermeticTxtFuncMap()
	for name := range out {
		if strings.HasPrefix(name, "gen") || strings.HasPrefix(name, "encrypt") || strings.HasPrefix(name, "decrypt") || strings.Contains(name, "ermutation") {
			delete(out, name)
		}
	}
	for _, name := range []string{"until", "untilStep", "seq", "repeat", "indent", "nindent", "bcrypt", "htpasswd", "derivePassword", "buildCustomCert", "ago", "now", "shuffle", "wrap", "wrapWith"} {
		delete(out, name)
	}
	out["normalize"] = normalizeName
	out["toYaml"] = func(v any) (string, error) {
		data, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(data), "\n"), err
	}
	out["fromYaml"] = func(text string) (map[string]any, error) {
		v := map[string]any{}
		err := yaml.Unmarshal([]byte(text), &v)
		return v, err
	}
	return out
}

// normalizeName converts a text to a valid object name, as Argo CD's function normalize does.
func normalizeName(text string) string {
	text = regexp.MustCompile(`[^-a-z0-9.]`).ReplaceAllString(strings.ToLower(text), "-")
	return strings.Trim(text[:min(len(text), 253)], "-.")
}
