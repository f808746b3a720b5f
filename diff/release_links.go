package diff

import (
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/remote"
	"github.com/quayside/quayside/internal/sanitize"
)

// Address returns the URL in an annotation, or "" if there is none. It adds a missing scheme if the
// host is a public forge.
func Address(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		if full := "https://" + s; repositoryAt(full).PublicForge() != "" {
			s = full
		}
	}
	return sanitize.URL(s)
}

// repositoryAt returns the repository in a URL, or the zero value.
func repositoryAt(page string) remote.Remote {
	r, _ := remote.Parse(page)
	return r
}

// Comparison returns the URL of the forge's page that compares two tags: a, of the previous version,
// and b, of the bundle's version. It returns "" if the forge or the tag format is unknown. It does
// not check whether the tags exist.
func Comparison(csv *bundle.CSV, previous string) (page, a, b string) {
	r := repositoryAt(Address(csv.Annotations["repository"]))
	prefix, ok := tagPrefix(csv)
	if !ok || previous == "" {
		return "", "", ""
	}
	a, b = prefix+previous, prefix+csv.Version
	if page = r.Compare(a, b); page == "" {
		return "", "", ""
	}
	return page, a, b
}

// tagPrefix returns the prefix of versions in tags: that in the image tag of the bundle, or else
// that in its name. ok is false if neither contains the version.
func tagPrefix(csv *bundle.CSV) (prefix string, ok bool) {
	if csv.Version == "" {
		return "", false
	}
	tag := imageref.Split(csv.Annotations["containerImage"]).Tag
	for _, prefix := range []string{"v", ""} {
		if tag == prefix+csv.Version {
			return prefix, true
		}
	}
	for _, prefix := range []string{"v", ""} {
		if strings.HasSuffix(csv.Name, "."+prefix+csv.Version) {
			return prefix, true
		}
	}
	return "", false
}
