package declare

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/yamlnode"
)

// SetFields returns the text of a file in which the declaration s has other values. It replaces
// only the values, or inserts a field next to the package: comments, quotes and order stay. It
// returns an error if the style of the file does not allow that. A scalar is a list of one value.
func SetFields(text []byte, s Subscription, values map[Field][]string) ([]byte, error) {
	lines := strings.SplitAfter(string(text), "\n")
	var fields []Field
	for f := range values {
		if fieldsOf(s.Dialect)[f] == "" {
			return nil, fmt.Errorf("%s has no field for it", s.Dialect)
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b Field) int { // from the end, so that the positions before stay valid
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

// Values returns the values of a field that SetFields can set, or nil.
func (s Subscription) Values(f Field) []string {
	switch f { //nolint:exhaustive // the others are not set
	case FieldChannel:
		return s.Channels
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
	}
	return nil
}

// setField replaces the value of one field, or inserts the field behind the package.
func setField(lines []string, s Subscription, f Field, values []string) error {
	path := fieldsOf(s.Dialect)[f]
	list, isItem := strings.CutSuffix(path, "[0]")
	isList := isItem || f == FieldWatch && s.Dialect == Quayside
	if at, isSet := s.Fields[path]; isSet {
		line := []rune(lines[at.Line-1])
		before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
		old := findScalar(rest)
		if old == "" || isItem && len(s.Values(f)) > 1 {
			return fmt.Errorf("%s: YAML style not supported: cannot change %s", at, path)
		}
		lines[at.Line-1] = before + format(values, isList && !isItem, old) + rest[len(old):]
		return nil
	}
	if _, isSet := s.Fields[list]; isItem && isSet {
		return fmt.Errorf("%s: YAML style not supported: cannot change %s", s.Fields[list], list)
	}
	at := s.At(FieldPackage)
	line := []rune(lines[at.Line-1])
	before, rest := string(line[:at.Col-1]), string(line[at.Col-1:])
	old := findScalar(rest)
	entry := list[strings.LastIndex(list, ".")+1:] + ": " + format(values, isList, "")
	if indent := regexp.MustCompile(`^( *)["']?[A-Za-z]+["']?: +$`).FindStringSubmatch(before); indent != nil {
		lines[at.Line-1] = strings.TrimSuffix(string(line), "\n") + "\n" + indent[1] + entry + "\n"
		return nil
	}
	lines[at.Line-1] = before + old + ", " + entry + rest[len(old):]
	return nil
}

// findScalar returns the scalar, or the list of scalars, at the start of a text, or "".
func findScalar(text string) string {
	return regexp.MustCompile(`^("([^"\\]|\\.)*"|'[^']*'|\[[^\]#]*\]|[^\s,\]}\[{&*!|>'"#]([^,\]}#]*[^\s,\]}#])?)`).FindString(text)
}

// format returns values as YAML, in the quotes of the old text.
func format(values []string, isList bool, old string) string {
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
