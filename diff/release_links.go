package diff

import (
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/remote"
	"github.com/quayside/quayside/internal/sanitize"
)

// Address returns the URL in the value of an annotation, or "" if it is not a URL. If the scheme is
// missing, it adds https for the hosts of public forges.
func Address(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		if full := "https://" + s; repositoryAt(full).PublicForge() != "" {
			s = full
		}
	}
	return sanitize.URL(s)
}

// repositoryAt returns the Git repository that a URL belongs to, or the zero value if it is
// unknown.
func repositoryAt(page string) remote.Remote {
	r, _ := remote.Parse(page)
	return r
}

// Comparison returns the URL of the forge's page that compares two versions of an operator, and the two tags:
// a for the previous version, b for the version of csv. It returns "" if the forge or the form of tags is
// unknown. The tags are guessed from the versions and may not exist.
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

// tagPrefix returns the prefix of version tags, such as "v". It is taken from the tag of the operator image,
// or else from the name of the bundle. ok is false if neither contains the version.
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
