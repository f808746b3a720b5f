package diff

import (
	"net/url"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/remote"
)

// Address returns the address that an annotation holds, "" where it holds something
// else. Some leave out the scheme of a forge.
func Address(s string) string {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "://") {
		if full := "https://" + s; repositoryAt(full).Public() != "" {
			s = full
		}
	}
	return inert.URL(s)
}

// repositoryAt returns the repository that an address is of, the zero value where it is
// of none.
func repositoryAt(page string) remote.Remote {
	r, _ := remote.Parse(page)
	return r
}

// Comparison returns the page on which a forge compares the tags of two versions,
// from one up to that of the bundle, and these; "" where the forge is not known, or how
// the bundle writes a version. Nobody asks whether there are such tags.
func Comparison(csv *bundle.CSV, from string) (page, a, b string) {
	r := repositoryAt(Address(csv.Annotations["repository"]))
	steps := strings.Count(r.Project, "/")
	way := ""
	switch forge := r.Likely(); {
	case forge == remote.GitLab && steps > 0:
		way = "/-/compare/"
	case (forge == remote.GitHub || forge == remote.Gitea) && steps == 1:
		way = "/compare/"
	}
	prefix, ok := tagPrefix(csv)
	if way == "" || !ok || from == "" {
		return "", "", ""
	}
	a, b = prefix+from, prefix+csv.Version
	return r.Page() + way + url.PathEscape(a) + "..." + url.PathEscape(b), a, b
}

// tagPrefix returns what a bundle writes before its version, and whether it says
// so: in the tag of its image, else in its name.
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
