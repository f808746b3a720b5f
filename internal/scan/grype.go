package scan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// grypeSource reads a member of source. Its target is an object for an image and a
// text for whatever else was scanned. The form is that of Grype's package
// grype/presenter/models (Document, Match), with what Syft says of an image.
func (r *reader) grypeSource(key string, out *report) error {
	if key != "target" || r.dec.PeekKind() != '{' {
		return r.dec.SkipValue()
	}
	return r.object(func(key string) error {
		switch key {
		case "userInput":
			return r.name(out)
		case "repoDigests":
			return r.digests(out)
		case "manifestDigest":
			from := r.next()
			if err := r.text(&out.manifest); err != nil {
				return err
			}
			if out.manifest != "" && !imageref.IsDigest(out.manifest) {
				return r.at(from, "%q is no digest such as sha256:…", out.manifest)
			}
			return nil
		default:
			return r.dec.SkipValue()
		}
	})
}

func (r *reader) grypeMatch(out *report) error {
	var v Vulnerability
	from := r.next()
	var related []string
	err := r.object(func(key string) error {
		switch key {
		case "vulnerability":
			return r.object(func(key string) error {
				if key == "id" {
					from = r.next()
				}
				return r.grypeVulnerability(key, &v)
			})
		case "relatedVulnerabilities":
			return r.list(func() error { return r.related(&related) })
		case "artifact":
			return r.object(func(key string) error {
				switch key {
				case "name":
					return r.text(&v.Package)
				case "version":
					return r.text(&v.Installed)
				default:
					return r.dec.SkipValue()
				}
			})
		default:
			return r.dec.SkipValue()
		}
	})
	if err != nil {
		return err
	}
	v.called(related)
	return r.add(out, from, v)
}

func (r *reader) grypeVulnerability(key string, v *Vulnerability) error {
	switch key {
	case "id":
		return r.text(&v.ID)
	case "severity":
		return r.severity(&v.Severity)
	case "dataSource":
		return r.link(&v.Link)
	case "description":
		return r.title(&v.Title)
	case "fix":
		return r.object(func(key string) error {
			if key != "versions" {
				return r.dec.SkipValue()
			}
			var all []string
			err := r.list(func() error {
				var one string
				err := r.text(&one)
				if len(all) < maxNames {
					all = append(all, one)
				}
				return err
			})
			v.Fixed = strings.Join(all, ", ")
			return err
		})
	default:
		return r.dec.SkipValue()
	}
}

// related reads an element of relatedVulnerabilities.
func (r *reader) related(into *[]string) error {
	return r.object(func(key string) error {
		if key != "id" {
			return r.dec.SkipValue()
		}
		from := r.next()
		var id string
		if err := r.text(&id); err != nil {
			return err
		}
		if !name().MatchString(id) {
			return r.at(from, "%q is no name of a vulnerability, such as CVE-2026-1234", id)
		}
		if len(*into) < maxNames {
			*into = append(*into, id)
		}
		return nil
	})
}

// called names a vulnerability as others do: by its CVE, where exactly one is
// related. An advisory that mends several keeps its own name.
func (v *Vulnerability) called(related []string) {
	var cves []string
	for _, id := range related {
		if strings.HasPrefix(id, "CVE-") && !slices.Contains(cves, id) {
			cves = append(cves, id)
		}
	}
	if len(cves) == 1 && !strings.HasPrefix(v.ID, "CVE-") {
		related = append(related, v.ID)
		v.ID = cves[0]
	}
	slices.Sort(related)
	related = slices.DeleteFunc(slices.Compact(related), func(id string) bool { return id == v.ID })
	if len(related) > 0 {
		v.Also = related
	}
}
