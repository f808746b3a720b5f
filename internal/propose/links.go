package propose

import (
	"context"
	"net/url"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/lockfile"
)

// links returns, for the operators that have a new version, links of Markdown to
// what was released: what the bundle itself names, and the comparison of both
// versions where its forge is known.
func (b *Proposal) links(ctx context.Context, before *lockfile.File) (map[string][]string, error) {
	var moved []string
	for _, c := range b.upgrade.Changes {
		if c.Operator != "" && c.To != "" && c.From != c.To {
			moved = append(moved, c.Operator)
		}
	}
	said, err := b.project.CSVs(ctx, b.upgrade.Lock, moved)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, key := range moved {
		csv := said[key]
		if csv == nil {
			continue
		}
		from := ""
		if namespace, pkg, _ := strings.Cut(key, "/"); before != nil {
			pin, _ := before.Pin(namespace, pkg)
			from = pin.Version
		}
		out[key] = released(csv, from)
	}
	return out, nil
}

// released returns links to what a bundle names, and to what changed since a
// version, which may be empty.
func released(csv *bundle.CSV, from string) []string {
	var out []string
	if repository := address(csv.Annotations["repository"]); repository != "" {
		out = append(out, inert.Link("repository", repository))
		if page, a, b := comparison(repository, csv, from); page != "" {
			out = append(out, inert.Link(a+"..."+b, page))
		}
	}
	if support := address(csv.Annotations["support"]); support != "" {
		out = append(out, inert.Link("support", support))
	}
	return out
}

// address returns the address that an annotation holds, "" where it holds something
// else. Some leave out the scheme of a forge.
func address(s string) string {
	s = strings.TrimSpace(s)
	for _, host := range []string{"github.com/", "gitlab.com/"} {
		if strings.HasPrefix(s, host) {
			s = "https://" + s
		}
	}
	return inert.URL(s)
}

// comparison returns the page on which a forge compares the tags of two versions,
// and these; "" where the forge is not known, or how the bundle writes a version.
func comparison(repository string, csv *bundle.CSV, from string) (page, a, b string) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(repository, "/"), ".git"))
	if err != nil || from == "" || strings.Count(strings.Trim(u.Path, "/"), "/") < 1 {
		return "", "", ""
	}
	way := ""
	switch host := u.Hostname(); {
	case host == "github.com" && strings.Count(strings.Trim(u.Path, "/"), "/") == 1:
		way = "/compare/"
	case strings.HasPrefix(host, "gitlab."):
		way = "/-/compare/"
	}
	prefix, ok := tagPrefix(csv)
	if way == "" || !ok {
		return "", "", ""
	}
	a, b = prefix+from, prefix+csv.Version
	return "https://" + u.Host + u.Path + way + url.PathEscape(a) + "..." + url.PathEscape(b), a, b
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
