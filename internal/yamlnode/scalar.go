package yamlnode

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/sanitize"
)

type kind int

const (
	kindString kind = iota
	kindNull
	kindBool
	kindInt
	kindFloat
)

// scalar is a scalar with the type that the API server assigns to it.
type scalar struct {
	kind kind
	text string // the value of a string; otherwise canonical JSON, or NaN, +Inf or -Inf
}

// resolve returns the type and value of a scalar by the rules of sigs.k8s.io/yaml, which implements YAML 1.1.
// yes, no, on, off, y and n are booleans, 0777 is octal, and a timestamp is a string.
func resolve(n *yaml.Node) (scalar, error) {
	if n.Kind != yaml.ScalarNode {
		return scalar{}, fmt.Errorf("expected a scalar, got %s", describeNode(n))
	}
	tag := ""
	if n.Style&yaml.TaggedStyle != 0 {
		tag = n.ShortTag()
	}
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case tag == "!!binary":
		raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return scalar{}, fmt.Errorf("!!binary: %w", err)
		}
		return scalar{text: string(raw)}, nil
	case tag == "" && quoted, tag == "!!str", tag == "!!timestamp":
		return scalar{text: n.Value}, nil
	case tag == "":
		return plainScalar(n.Value), nil
	}
	return parseTagged(tag, n.Value)
}

// parseTagged returns the type and value of a scalar with an explicit tag.
func parseTagged(tag, text string) (scalar, error) {
	s := plainScalar(text)
	want, known := map[string]kind{"!!null": kindNull, "!!bool": kindBool, "!!int": kindInt, "!!float": kindFloat}[tag]
	switch {
	case !known:
		return scalar{text: text}, nil
	case s.kind == want, want == kindFloat && s.kind == kindInt:
		return s, nil
	}
	return scalar{}, fmt.Errorf("%q is not of type %s", text, tag)
}

func plainScalar(text string) scalar {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return scalar{kindNull, "null"}
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return scalar{kindBool, "true"}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return scalar{kindBool, "false"}
	case ".nan", ".NaN", ".NAN":
		return scalar{kindFloat, "NaN"}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return scalar{kindFloat, "+Inf"}
	case "-.inf", "-.Inf", "-.INF":
		return scalar{kindFloat, "-Inf"}
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' {
		if s, ok := parseNumber(text); ok {
			return s
		}
	}
	return scalar{kindString, text}
}

func parseNumber(text string) (scalar, bool) {
	if text[0] == '.' {
		f, err := strconv.ParseFloat(text, 64)
		return formatFloat(f), err == nil
	}
	digits := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return scalar{kindInt, strconv.FormatInt(i, 10)}, true
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return scalar{kindInt, strconv.FormatUint(u, 10)}, true
	}
	unsigned := strings.TrimLeft(digits[:1], "+-") + digits[1:]
	if isDigits(unsigned) && unsigned[0] != '0' && len(unsigned) <= 400 {
		if b, ok := new(big.Int).SetString(digits, 10); ok {
			return scalar{kindInt, b.String()}, true
		}
	}
	if isDecimal(unsigned) {
		f, err := strconv.ParseFloat(digits, 64)
		return formatFloat(f), err == nil
	}
	return scalar{}, false
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isDecimal reports whether s consists of digits with an optional point and exponent. strconv
// accepts more, such as 0x1p4 or infinity, but YAML does not.
func isDecimal(s string) bool {
	mantissa, exponent, found := strings.Cut(strings.ReplaceAll(s, "E", "e"), "e")
	if found && !isDigits(strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")) {
		return false
	}
	whole, part, _ := strings.Cut(mantissa, ".")
	return isDigits(whole) && (part == "" || isDigits(part)) || whole == "" && isDigits(part)
}

// formatFloat returns f as a scalar, formatted as by encoding/json. NaN and infinities have texts
// that are not valid JSON.
func formatFloat(f float64) scalar {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return scalar{kindFloat, strconv.FormatFloat(f, 'g', -1, 64)}
	}
	if f == 0 {
		f = 0 // -0 becomes 0: JSON has a negative zero, but YAML integers do not
	}
	b, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("yamlnode: %v is finite and cannot be JSON: %v", f, err))
	}
	return scalar{kindFloat, string(b)}
}

// keyText returns a mapping key as the text of a JSON key, such as "true" for yes.
func keyText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("expected a scalar as key, got %s", describeNode(n))
	}
	s, err := resolve(n)
	if err != nil {
		return "", err
	}
	switch s.kind { //nolint:exhaustive // other kinds are returned as their text
	case kindNull:
		return "", errors.New("expected a key, got null")
	case kindInt, kindFloat:
		return numberKey(s)
	}
	return s.text, nil
}

// numberKey formats a number that is a mapping key, as the YAML library of the API server does.
// That library parses fractions in single precision, and rejects some integers.
func numberKey(n scalar) (string, error) {
	if n.kind == kindInt {
		if _, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			return n.text, nil
		}
		if _, err := strconv.ParseUint(n.text, 10, 64); err == nil {
			return "", fmt.Errorf("expected a string as key, got the number %s (put it in quotes)", n.text)
		}
	}
	f, _ := strconv.ParseFloat(n.text, 64) // ignore the error: overflow gives an infinity
	switch s := strconv.FormatFloat(f, 'g', -1, 32); s {
	case "+Inf":
		return ".inf", nil
	case "-Inf":
		return "-.inf", nil
	case "NaN":
		return ".nan", nil
	default:
		return s, nil
	}
}

// describeNode describes the value of n for a message, such as "the number 5".
func describeNode(n *yaml.Node) string {
	switch n.Kind { //nolint:exhaustive // scalars are handled below
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	s, err := resolve(n)
	switch {
	case err != nil:
		return fmt.Sprintf("%q", sanitize.Truncate(n.Value, maxShown))
	case s.kind == kindNull:
		return "null"
	case s.kind == kindBool:
		return fmt.Sprintf("the boolean %s", n.Value)
	case s.kind == kindInt, s.kind == kindFloat:
		return fmt.Sprintf("the number %s", sanitize.Truncate(n.Value, maxShown))
	}
	return fmt.Sprintf("%q", sanitize.Truncate(s.text, maxShown))
}

// maxShown is the maximum number of bytes of a value in a message.
const maxShown = 60
