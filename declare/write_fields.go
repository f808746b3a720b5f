package declare

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// SetFields returns the text of a file in which fields of the declaration s have new values. It
// replaces only the values, or inserts a field after the package. It keeps comments, quotes and
// order. If the style of the file makes this impossible, it returns an error. The value of a scalar
// field is a list with one item.
func SetFields(text []byte, s Subscription, values map[Field][]string) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	var fields []Field
	for f := range values {
		if fieldsOf(s.Dialect)[f] == "" {
			return nil, fmt.Errorf("%s has no field for %s", s.Dialect, fieldsOf(Quayside)[f])
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b Field) int { // start with the last field, so that the positions of earlier ones stay valid
		if d := s.At(b, FieldPackage).Compare(s.At(a, FieldPackage)); d != 0 {
			return d
		}
		return int(b - a)
	})
	for _, f := range fields {
		if err := setField(lines, s, f, values[f]); err != nil {
			return nil, err
		}
	}
	out := []byte(strings.Join(lines, ""))
	set, err := Parse(s.Pos.File, out)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(set.Subscriptions, func(o Subscription) bool { return o.Dialect == s.Dialect && o.Key() == s.Key() })
	if i < 0 || slices.ContainsFunc(fields, func(f Field) bool { return !slices.Equal(set.Subscriptions[i].Values(f), values[f]) }) {
		return nil, fmt.Errorf("%s: YAML style not supported: cannot change %s", s.Pos.File, s.Key())
	}
	return out, nil
}

// ParseConfig parses a config in YAML, and returns it as canonical JSON. name is the file name in
// positions.
func ParseConfig(name, text string) ([]byte, error) {
	const prefix = "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\nmetadata: {name: x, namespace: x}\nspec:\n  package: x\n  config:\n"
	set, err := Parse(name, []byte(prefix+"    "+strings.ReplaceAll(text, "\n", "\n    ")))
	if err != nil {
		return nil, diag.MapPositions(err, func(diag.Pos) diag.Pos { return diag.Pos{File: name} })
	}
	return set.Subscriptions[0].Config, nil
}

// Values returns the values of a field, as SetFields accepts them. It returns nil if the field is
// not set, or if SetFields cannot set it.
func (s Subscription) Values(f Field) []string {
	switch f { //nolint:exhaustive // the others are not set
	case FieldChannel:
		return s.Channels
	case FieldBundle:
		return singleton(s.Bundle)
	case FieldRange:
		return singleton(s.Range)
	case FieldStartingCSV:
		return singleton(s.StartingCSV)
	case FieldApproval:
		return singleton(string(s.Approval))
	case FieldWatch:
		if s.WatchAll {
			return []string{"*"}
		}
		return s.Watch
	case FieldOnly:
		return s.Only
	case FieldCatalog, FieldCatalogNamespace:
		switch {
		case s.Catalog == nil:
			return nil
		case s.Dialect == Quayside:
			return singleton(s.Catalog.String())
		case f == FieldCatalog:
			return singleton(s.Catalog.Name)
		}
		return singleton(s.Catalog.Namespace)
	case FieldConfig:
		return singleton(string(s.Config))
	case FieldValues:
		return singleton(string(s.OwnValues))
	case FieldValuesFiles:
		return s.ValuesFiles
	}
	return nil
}

// setField replaces the value of one field, or inserts the field after the package.
func setField(lines []string, s Subscription, f Field, values []string) error {
	path := fieldsOf(s.Dialect)[f]
	if f == FieldConfig || f == FieldValues {
		return setMapping(lines, s, path, values)
	}
	list, isItem := strings.CutSuffix(path, "[0]")
	isList := isItem || f == FieldWatch && s.Dialect == Quayside || f == FieldValuesFiles || f == FieldOnly
	if at, isSet := s.Fields[path]; isSet {
		line := []rune(lines[at.Line-1])
		before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
		if isList && !isItem && strings.TrimSpace(before) == "" && strings.HasPrefix(rest, "- ") {
			return setItems(lines[at.Line-1:], before+"- ", s.Values(f), values)
		}
		old := findScalar(rest)
		if old == "" || isItem && len(s.Values(f)) > 1 {
			return fmt.Errorf("%s: YAML style not supported: cannot change %s", at, path)
		}
		lines[at.Line-1] = before + formatValues(values, isList && !isItem, old) + rest[len(old):]
		return nil
	}
	if _, isSet := s.Fields[list]; isItem && isSet {
		return fmt.Errorf("%s: YAML style not supported: cannot change %s", s.Fields[list], list)
	}
	at := s.At(FieldPackage)
	line := []rune(lines[at.Line-1])
	before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
	old := findScalar(rest)
	entry := list[strings.LastIndex(list, ".")+1:] + ": " + formatValues(values, isList, "")
	if indent := regexp.MustCompile(`^( *)["']?[A-Za-z]+["']?: +$`).FindStringSubmatch(before); indent != nil {
		lines[at.Line-1] = strings.TrimSuffix(string(line), "\n") + "\n" + indent[1] + entry + "\n"
		return nil
	}
	lines[at.Line-1] = before + old + ", " + entry + rest[len(old):]
	return nil
}

// setItems replaces the items of a block list, which starts at the first line. It keeps the line of an item,
// with its comment, if the item stays at its place.
func setItems(lines []string, dash string, old, values []string) error {
	for i, v := range old {
		rest, isItem := strings.CutPrefix(lines[i], dash)
		scalar := findScalar(rest)
		if !isItem || scalar == "" {
			return fmt.Errorf("YAML style not supported: %q", strings.TrimSpace(lines[i]))
		}
		switch {
		case i >= len(values):
			lines[i] = ""
		case v != values[i]:
			lines[i] = dash + formatValues(values[i:i+1], false, scalar) + rest[len(scalar):]
		}
	}
	if len(values) > len(old) {
		last := len(old) - 1
		lines[last] = strings.TrimSuffix(lines[last], "\n") + "\n"
		for _, v := range values[len(old):] {
			lines[last] += dash + formatValues([]string{v}, false, "") + "\n"
		}
	}
	return nil
}

// setMapping replaces the mapping at path: the config or the values. It removes the mapping if values is empty,
// and inserts a new mapping after the package. It does not keep comments and quotes in the mapping.
func setMapping(lines []string, s Subscription, path string, values []string) error {
	raw := []byte("{}")
	if len(values) > 0 {
		raw = []byte(values[0])
	}
	var flow, block bytes.Buffer
	if err := yamlnode.FlowJSON(&flow, raw); err != nil {
		return err
	}
	name := path[strings.LastIndex(path, ".")+1:]
	at, isSet := s.Fields[path]
	if !isSet {
		at = s.At(FieldPackage)
	}
	line := []rune(lines[at.Line-1])
	before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
	key := regexp.MustCompile(`^( *)["']?[A-Za-z]+["']?: +$`).FindStringSubmatch(before)
	switch old := findMapping(rest); {
	case isSet && old != "":
		lines[at.Line-1] = before + flow.String() + rest[len(old):]
	case isSet && strings.TrimSpace(before) == "" && !strings.HasPrefix(rest, "{"):
		end := at.Line // end of the block
		for i, l := range lines[at.Line:] {
			if text := strings.TrimLeft(l, " "); strings.TrimSpace(text) != "" && len(l)-len(text) < len(before) {
				break
			} else if strings.TrimSpace(text) != "" {
				end = at.Line + i + 1
			}
		}
		if key := at.Line - 2; len(values) == 0 && strings.TrimSpace(lines[key]) == name+":" {
			clear(lines[key:end])
			return nil
		}
		if err := yamlnode.BlockJSON(&block, raw, len(before)-2); err != nil {
			return err
		}
		clear(lines[at.Line:end])
		lines[at.Line-1] = before + strings.TrimLeft(block.String(), " \n")
	case isSet, s.Dialect == V1: // in a ClusterExtension, they are not next to the package
		return fmt.Errorf("%s: YAML style not supported: cannot change %s", at, path)
	case key != nil:
		if err := yamlnode.BlockJSON(&block, raw, len(key[1])); err != nil {
			return err
		}
		lines[at.Line-1] = strings.TrimSuffix(string(line), "\n") + "\n" + key[1] + name + ":" + block.String()
	default:
		old := findScalar(rest)
		lines[at.Line-1] = before + old + ", " + name + ": " + flow.String() + rest[len(old):]
	}
	return nil
}

// findMapping returns the flow mapping at the start of a text. It returns "" if there is none, or
// if it has several lines.
func findMapping(text string) string {
	if !strings.HasPrefix(text, "{") {
		return ""
	}
	depth := 0
	for _, token := range regexp.MustCompile(`"([^"\\]|\\.)*"|'[^']*'|.`).FindAllStringIndex(text, -1) {
		switch text[token[0]:token[1]] {
		case "{":
			depth++
		case "}":
			depth--
		}
		if depth == 0 {
			return text[:token[1]]
		}
	}
	return ""
}

// findScalar returns the scalar, or the flow list of scalars, at the start of a text, or "".
func findScalar(text string) string {
	return regexp.MustCompile(`^("([^"\\]|\\.)*"|'[^']*'|\[[^\]#]*\]|[^\s,\]}\[{&*!|>'"#]([^,\]}#]*[^\s,\]}#])?)`).FindString(text)
}

// formatValues returns values as YAML, with the kind of quotes in old.
func formatValues(values []string, isList bool, old string) string {
	var out []string
	for _, v := range values {
		switch quoted := yamlnode.Quote(v); {
		case strings.HasPrefix(old, `"`):
			out = append(out, `"`+strings.Trim(quoted, `"`)+`"`)
		case strings.HasPrefix(old, "'") && !strings.ContainsAny(v, `'\`):
			out = append(out, "'"+v+"'")
		default:
			out = append(out, quoted)
		}
	}
	if isList {
		return "[" + strings.Join(out, ", ") + "]"
	}
	return strings.Join(out, "")
}
