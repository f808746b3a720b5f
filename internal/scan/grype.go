package scan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// readGrypeSource reads one field of the object source. key is the name of the field. For a scan of an
// image, the field "target" is an object, otherwise a string. Grype's package grype/presenter/models
// defines the format (Document, Match). The data about the image comes from Syft.
func (r *reader) readGrypeSource(key string, out *imageScan) error {
	if key != "target" || r.dec.PeekKind() != '{' {
		return r.dec.SkipValue()
	}
	return r.readObject(func(key string) error {
		switch key {
		case "userInput":
			return r.readName(out)
		case "repoDigests":
			return r.readDigests(out)
		case "manifestDigest":
			from := r.nextOffset()
			if err := r.readText(&out.manifest); err != nil {
				return err
			}
			if out.manifest != "" && !imageref.IsDigest(out.manifest) {
				return r.errorAt(from, "%q is not a digest such as sha256:…", out.manifest)
			}
			return nil
		default:
			return r.dec.SkipValue()
		}
	})
}

// readGrypeMatch reads an item of matches, and adds the vulnerability to out.
func (r *reader) readGrypeMatch(out *imageScan) error {
	var v Vulnerability
	from := r.nextOffset()
	var related []string
	err := r.readObject(func(key string) error {
		switch key {
		case "vulnerability":
			return r.readObject(func(key string) error {
				if key == "id" {
					from = r.nextOffset()
				}
				return r.readGrypeVulnerability(key, &v)
			})
		case "relatedVulnerabilities":
			return r.readList(func() error { return r.readRelated(&related) })
		case "artifact":
			return r.readObject(func(key string) error {
				switch key {
				case "name":
					return r.readText(&v.Package)
				case "version":
					return r.readText(&v.Installed)
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
	v.setNames(related)
	return r.addVulnerability(out, from, v)
}

// readGrypeVulnerability reads the field with the name key of a vulnerability into v.
func (r *reader) readGrypeVulnerability(key string, v *Vulnerability) error {
	switch key {
	case "id":
		return r.readText(&v.ID)
	case "severity":
		return r.readSeverity(&v.Severity)
	case "dataSource":
		return r.readLink(&v.Link)
	case "description":
		return r.readTitle(&v.Title)
	case "fix":
		return r.readObject(func(key string) error {
			if key != "versions" {
				return r.dec.SkipValue()
			}
			var all []string
			err := r.readList(func() error {
				var one string
				err := r.readText(&one)
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

// readRelated reads an item of relatedVulnerabilities, and appends its ID to into.
func (r *reader) readRelated(into *[]string) error {
	return r.readObject(func(key string) error {
		if key != "id" {
			return r.dec.SkipValue()
		}
		from := r.nextOffset()
		var id string
		if err := r.readText(&id); err != nil {
			return err
		}
		if !vulnerabilityID().MatchString(id) {
			return r.errorAt(from, "%q is not a vulnerability ID such as CVE-2026-1234", id)
		}
		if len(*into) < maxNames {
			*into = append(*into, id)
		}
		return nil
	})
}

// setNames sets v.Aliases to the related IDs. If exactly one related ID is a CVE, it becomes v.ID. An
// advisory for several CVEs keeps its ID.
func (v *Vulnerability) setNames(related []string) {
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
		v.Aliases = related
	}
}
