package yamlnode

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quayside/quayside/internal/diag"
)

// Checker collects what is wrong with the values of one object, each at the
// place of its field: "spec.channels[0]".
type Checker struct {
	Fields diag.Fields // as Positions returns them
	Whole  diag.Pos    // where a field is to be sought that is not said
	Faults *diag.List
}

// At returns where a field stands, else the nearest one around it.
func (c Checker) At(field string) diag.Pos { return c.Fields.At(field, c.Whole) }

// Addf adds a fault of a field, which its text begins with.
func (c Checker) Addf(field, format string, args ...any) {
	c.Faults.Addf(c.At(field), field+": "+format, args...)
}

// Given reports whether value is there, and says so where it is not; what has
// the wrong type was said already.
func (c Checker) Given(field, value string) bool {
	if value != "" {
		return true
	}
	pos, stands := c.Fields[field]
	if !stands || !slices.ContainsFunc(*c.Faults, func(e *diag.Error) bool { return e.Pos == pos }) {
		c.Addf(field, "missing")
	}
	return false
}

// Name checks a required name of an object.
func (c Checker) Name(field, value string) {
	if c.Given(field, value) && !IsDNS1123Subdomain(value) {
		c.Addf(field, "%q is not a Kubernetes name (lower case letters, digits, - and .)", value)
	}
}

// Namespace checks a required name of a namespace.
func (c Checker) Namespace(field, value string) {
	if c.Given(field, value) {
		c.Label(field, value)
	}
}

// Label checks what is to name a namespace.
func (c Checker) Label(field, value string) {
	if !IsDNS1123Label(value) {
		c.Addf(field, "%q is not a namespace's name (lower case letters, digits and -, at most 63)", value)
	}
}

// Enum checks a word.
func (c Checker) Enum(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.Addf(field, "%q is not one of %s%s", value, strings.Join(allowed, ", "), diag.DidYouMean(value, allowed))
	}
}

// IsDNS1123Label reports whether s can name a namespace.
func IsDNS1123Label(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// IsDNS1123Subdomain reports whether s can name most other objects.
func IsDNS1123Subdomain(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
