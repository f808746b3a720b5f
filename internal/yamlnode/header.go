package yamlnode

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/version"

	"github.com/quayside/quayside/internal/diag"
)

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
