package yamlnode

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	"github.com/quayside/quayside/internal/diag"
)

// Checker collects faults in the fields of one object. A fault has the position of its field, such
// as "spec.channels[0]".
type Checker struct {
	Fields diag.Fields // positions of the fields, from Positions
	Whole  diag.Pos    // position of the object, for missing fields
	Faults *diag.List
}

// At returns the position of a field. If the field is missing, it returns the position of the
// nearest field around it.
func (c Checker) At(field string) diag.Pos { return c.Fields.At(field, c.Whole) }

// Addf adds a fault about a field. The message begins with the field.
func (c Checker) Addf(field, format string, args ...any) {
	c.Faults.Addf(c.At(field), field+": "+format, args...)
}

// Require reports whether value is set. If value is empty, Require adds a fault, unless the field
// already has a fault, such as a wrong type.
func (c Checker) Require(field, value string) bool {
	if value != "" {
		return true
	}
	pos, known := c.Fields[field]
	if !known || !slices.ContainsFunc(*c.Faults, func(e *diag.Error) bool { return e.Pos == pos }) {
		c.Addf(field, "missing")
	}
	return false
}

// Name adds a fault unless value is a valid name of a Kubernetes object. An empty value is a fault.
func (c Checker) Name(field, value string) {
	if c.Require(field, value) && !IsDNS1123Subdomain(value) {
		c.Addf(field, "%q is not a Kubernetes name (lower case letters, digits, - and .)", value)
	}
}

// Namespace adds a fault unless value is a valid name of a namespace. An empty value is a fault.
func (c Checker) Namespace(field, value string) {
	if c.Require(field, value) {
		c.Label(field, value)
	}
}

// Label adds a fault unless value is a valid name of a namespace. It is Namespace without Require.
func (c Checker) Label(field, value string) {
	if !IsDNS1123Label(value) {
		c.Addf(field, "%q is not a valid namespace name (lower case letters, digits and -, at most 63)", value)
	}
}

// Enum adds a fault unless value is one of the allowed words.
func (c Checker) Enum(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.Addf(field, "%q: must be one of %s%s", value, strings.Join(allowed, ", "), diag.DidYouMean(value, allowed))
	}
}

// IsDNS1123Label reports whether s is a valid name of a namespace.
func IsDNS1123Label(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// IsDNS1123Subdomain reports whether s is a valid name of most other objects.
func IsDNS1123Subdomain(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

// CheckHeader adds faults unless a document has the given apiVersion and kind. It returns false if a newer
// version of quayside wrote the document, because the other fields cannot be checked then. The fault names
// both versions.
//
// The apiVersion is the schema number of the document, in the order of Kubernetes API versions. A schema may
// get additional optional fields; any other change requires a new apiVersion.
func CheckHeader(file string, n *yaml.Node, apiVersion, kind string, errs *diag.List) bool {
	for _, want := range [][2]string{{"apiVersion", apiVersion}, {"kind", kind}} {
		_, v := Field(n, want[0])
		if v == nil {
			errs.Addf(At(file, n), "no %s (expected %s)", want[0], want[1])
			continue
		}
		got, ok := Text(v)
		switch {
		case !ok || got == want[1]:
		case want[0] == "apiVersion" && isNewer(got, apiVersion):
			errs.Addf(At(file, v), "written by a newer quayside (schema %s; this version supports %s)", got, apiVersion)
			return false
		default:
			errs.Addf(At(file, v), "%s: %q: must be %s", want[0], got, want[1])
		}
	}
	return true
}

// isNewer reports whether apiVersion is a later version of the same API group than known.
func isNewer(apiVersion, known string) bool {
	group, supported, _ := strings.Cut(known, "/")
	got, ok := strings.CutPrefix(apiVersion, group+"/")
	return ok && regexp.MustCompile(`^v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?$`).MatchString(got) && version.CompareKubeAwareVersionStrings(got, supported) > 0
}
