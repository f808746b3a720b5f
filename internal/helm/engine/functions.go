package engine

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// later is the difference between the clocks of the first and the second rendering. It changes every
// part of a date.
const later = (400*24+3)*time.Hour + 7*time.Minute + 11*time.Second

// maxRepeat is the largest number of bytes or items that one call of a function returns.
const maxRepeat = 64 << 20

// functions returns the template functions that differ from Helm's. again is true for the second
// rendering, in which functions with random results return other results.
func (j *job) functions(again bool) template.FuncMap {
	random := func(first, second string) func(int) string {
		return func(n int) string { return strings.Repeat(choose(again, first, second), max(0, min(n, maxRepeat))) }
	}
	sprigs := sprig.TxtFuncMap()
	return template.FuncMap{
		"quaysideEnter": func(n int) string {
			if n >= 0 && n < len(j.names) {
				j.watch.enter(j.names[n])
			}
			return ""
		},
		"quaysideLeave": func() string { j.watch.leave(); return "" },

		"getHostByName": func(string) (string, error) { return "", errNetwork },
		"lookup": func(string, string, string, string) map[string]any {
			j.lookups[j.watch.current()] = true
			return map[string]any{}
		},

		"now":          func() time.Time { return time.Now().UTC().Add(choose(again, 0, later)) },
		"randAlphaNum": random("a", "b"),
		"randAlpha":    random("a", "b"),
		"randAscii":    random("a", "b"),
		"randNumeric":  random("1", "2"),
		"randInt":      func(low, high int) int { return choose(again, low, max(low, high-1)) },
		"shuffle": func(s string) string {
			sorted := slices.Sorted(slices.Values([]rune(s)))
			if again {
				slices.Reverse(sorted)
			}
			return string(sorted)
		},
		"genPrivateKey":     genPrivateKey,
		"genCA":             withKey(sprigs["genCAWithKey"]),
		"genSelfSignedCert": withKey(sprigs["genSelfSignedCertWithKey"]),
		"genSignedCert":     withKey(sprigs["genSignedCertWithKey"]),

		"keys":   sortedKeys,
		"values": sortedValues,

		"repeat": func(n int, s string) (string, error) {
			if n > 0 && len(s) > 0 && n > maxRepeat/len(s) {
				return "", fmt.Errorf("repeat: the result exceeds %d MiB", maxRepeat>>20)
			}
			return strings.Repeat(s, n), nil
		},
	}
}

// genPrivateKey is Sprig's function, but it generates an ECDSA key in place of an RSA or DSA key. The result is
// random anyway, and an RSA key may need seconds.
func genPrivateKey(kind string) string {
	generate, _ := sprig.TxtFuncMap()["genPrivateKey"].(func(string) string)
	if slices.Contains([]string{"", "rsa", "dsa"}, kind) {
		kind = "ecdsa"
	}
	return generate(kind)
}

// withKey returns f, a function of Sprig that makes a certificate, without its last parameter, which is the
// private key. It gets a new ECDSA key; see [genPrivateKey].
func withKey(f any) any {
	v := reflect.ValueOf(f)
	t := v.Type()
	var in, out []reflect.Type
	for i := range t.NumIn() - 1 {
		in = append(in, t.In(i))
	}
	for i := range t.NumOut() {
		out = append(out, t.Out(i))
	}
	return reflect.MakeFunc(reflect.FuncOf(in, out, false), func(args []reflect.Value) []reflect.Value {
		return v.Call(append(args, reflect.ValueOf(genPrivateKey("ecdsa"))))
	}).Interface()
}

func choose[T any](again bool, first, second T) T {
	if again {
		return second
	}
	return first
}

// sortedKeys returns the sorted keys of the first dictionary, then the sorted keys of the second, and so on.
// Sprig returns keys in random order.
func sortedKeys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

// sortedValues returns the values of a dictionary, sorted by key.
func sortedValues(dict map[string]any) []any {
	out := []any{}
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		out = append(out, dict[k])
	}
	return out
}

// markTemplates adds an action at the beginning and the end of each template that Helm executes,
// so that the current template is known.
func (j *job) markTemplates(c *chart.Chart, seen map[*chart.Chart]bool) {
	if seen[c] {
		return
	}
	seen[c] = true
	marked := make([]*common.File, len(c.Templates))
	for i, t := range c.Templates {
		marked[i] = t
		name := path.Join(c.ChartFullPath(), t.Name)
		j.sources[name] = string(t.Data)
		if !strings.HasPrefix(path.Base(t.Name), "_") {
			marked[i] = &common.File{Name: t.Name, Data: slices.Concat([]byte(prefix(len(j.names))), t.Data, []byte("{{quaysideLeave}}"))}
			j.names = append(j.names, name)
		}
	}
	c.Templates = marked
	for _, d := range c.Dependencies() {
		j.markTemplates(d, seen)
	}
}

func prefix(n int) string { return fmt.Sprintf("{{quaysideEnter %d}}", n) }

// location finds the position in an error of the template engine.
var location = regexp.MustCompile(`(?:template: |error at \(|error in \(|^|\n\s*)([^\s:()][^:()\n]*):(\d+)(?::(\d+))?\)?:?\s*`)

// templateError returns an error of the template engine with the position in the outermost template.
func (j *job) templateError(err error) error {
	text := strings.TrimSpace(err.Error())
	out := &wire.Error{Path: j.watch.current(), Msg: oneLine(text)}
	m := location.FindStringSubmatchIndex(text)
	if m == nil {
		return out
	}
	name := text[m[2]:m[3]]
	if _, ok := j.sources[name]; !ok {
		return out
	}
	out.Path = name
	out.Line, _ = strconv.Atoi(text[m[4]:m[5]])
	if m[6] >= 0 {
		out.Col, _ = strconv.Atoi(text[m[6]:m[7]])
	}
	if i := slices.Index(j.names, name); i >= 0 && out.Line == 1 {
		out.Col = max(0, out.Col-len(prefix(i)))
	}
	if rest := strings.TrimSpace(text[m[1]:]); rest != "" {
		out.Msg = oneLine(rest)
	}
	if errors.Is(err, errNetwork) || strings.Contains(text, errNetwork.Error()) {
		out.Msg = errNetwork.Error()
	}
	return out
}

// oneLine joins the lines of a message.
func oneLine(s string) string {
	var parts []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, strings.TrimSuffix(line, ":"))
		}
	}
	return strings.Join(parts, ": ")
}
