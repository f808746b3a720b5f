package diff

import (
	"strings"

	"github.com/quayside/quayside/internal/base/imageref"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/internal/base/remote"
	"github.com/quayside/quayside/internal/bundle"
)

// Address returns the URL in an annotation, or "" if there is none. It adds the scheme
// that some annotations omit for a public forge.
func Address(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		if full := "https://" + s; repositoryAt(full).Public() != "" {
			s = full
		}
	}
	return inert.URL(s)
}

// repositoryAt returns the repository of an address, or the zero value.
func repositoryAt(page string) remote.Remote {
	r, _ := remote.Parse(page)
	return r
}

// Comparison returns the page of a forge that compares the tags of two versions, from one
// up to that of the bundle, and these tags; "" if the forge or the tag format is unknown.
// It does not check whether the tags exist.
func Comparison(csv *bundle.CSV, from string) (page, a, b string) {
	r := repositoryAt(Address(csv.Annotations["repository"]))
	prefix, ok := tagPrefix(csv)
	if !ok || from == "" {
		return "", "", ""
	}
	a, b = prefix+from, prefix+csv.Version
	if page = r.Compare(a, b); page == "" {
		return "", "", ""
	}
	return page, a, b
}

// tagPrefix returns the prefix of versions in a bundle's tags: that of the tag of its
// image, or that in its name. ok is false if neither contains the version.
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
