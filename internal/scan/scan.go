// Package scan reads the results of vulnerability scanners: the JSON that Trivy and Grype write,
// one file for each image, any number of files.
//
// Scans are matched to images by digest, independent of the image's name. An image without
// vulnerabilities differs from an image without a scan. The package scans nothing and makes no
// requests. It rejects files in other formats with the position of the fault, and ignores unknown
// fields.
//
// Start from [LoadFS] and [Results.Vulnerabilities].
package scan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/imageref"
)

// Severity is the severity of a vulnerability on one scale for all scanners.
type Severity int

// The severities, lowest first. Unknown means that the vulnerability has not
// been rated.
const (
	Unknown Severity = iota
	Negligible
	Low
	Medium
	High
	Critical
)

// String returns "critical", "high", "medium", "low", "negligible" or "unknown".
func (s Severity) String() string {
	names := [...]string{"unknown", "negligible", "low", "medium", "high", "critical"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("severity(%d)", int(s))
	}
	return names[s]
}

// Severities returns all severities, worst first, and Unknown at the end.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, Negligible, Unknown} }

// ParseSeverity parses the output of String in any case, and the scanners'
// variants: "" for Unknown and "none" for Negligible.
func ParseSeverity(text string) (Severity, error) {
	switch word := strings.ToLower(text); word {
	case "":
		return Unknown, nil
	case "none":
		return Negligible, nil
	default:
		for _, s := range Severities() {
			if word == s.String() {
				return s, nil
			}
		}
	}
	return Unknown, fmt.Errorf("severity %q: want one of critical, high, medium, low, negligible, unknown", text)
}

// Vulnerability is a known vulnerability of one package in an image.
type Vulnerability struct {
	ID        string   // "CVE-2026-1234" if it has a CVE, else the scanner's ID: "GHSA-…"
	Also      []string // its other names, sorted
	Severity  Severity // the worst in all scans of the image
	Package   string   // "openssl", "golang.org/x/net"
	Installed string   // version of the package; may be empty
	Fixed     string   // fixed versions, as written by the scanner; may be empty
	Title     string   // one line; may be empty
	Link      string   // http or https URL of a page; may be empty
}

// Results holds the results of several files. It is immutable.
type Results struct {
	scans     []imageScan
	byDigest  map[string][]int    // indexes in scans, by digest
	platforms map[string][]string // digests of scanned manifests, by digest of their index
}

// imageScan is the result of one file for one image.
type imageScan struct {
	file     string
	name     string   // the scanner's name of the image
	digests  []string // digests of the named image, which may be an index
	manifest string   // digest of the scanned manifest; may be empty
	found    []Vulnerability
}

// newResults indexes scans, which are in the order of their files.
func newResults(scans []imageScan) *Results {
	r := &Results{scans: scans, byDigest: map[string][]int{}, platforms: map[string][]string{}}
	for i, s := range scans {
		all := s.digests
		if s.manifest != "" && !slices.Contains(all, s.manifest) {
			all = append(slices.Clone(all), s.manifest)
		}
		for _, d := range all {
			r.byDigest[d] = append(r.byDigest[d], i)
		}
		for _, d := range s.digests {
			if s.manifest != "" && d != s.manifest && !slices.Contains(r.platforms[d], s.manifest) {
				r.platforms[d] = append(r.platforms[d], s.manifest)
			}
		}
	}
	return r
}

// Vulnerabilities returns the vulnerabilities of the image with a digest ("sha256:…"), sorted by
// ID, package and version, without duplicates across scanners. known is false if no scan of the
// image exists.
//
// For an index it returns the vulnerabilities of its platform images that were scanned by the
// digest of the index, or by their own digest in a scan that refers to the index.
func (r *Results) Vulnerabilities(digest string) (found []Vulnerability, known bool) {
	scans := slices.Clone(r.byDigest[digest])
	for _, platform := range r.platforms[digest] {
		scans = append(scans, r.byDigest[platform]...)
	}
	slices.Sort(scans)
	for _, i := range scans {
		found = append(found, r.scans[i].found...)
	}
	return mergeVulnerabilities(found), len(scans) > 0
}

// mergeVulnerabilities sorts a list by ID, package and version, and merges
// duplicates: the result has the worst severity and the first non-empty text of
// each field.
func mergeVulnerabilities(list []Vulnerability) []Vulnerability {
	list = slices.Clone(list)
	compare := func(a, b Vulnerability) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Package, b.Package), strings.Compare(a.Installed, b.Installed))
	}
	slices.SortStableFunc(list, compare)
	var out []Vulnerability
	for _, v := range list {
		last := len(out) - 1
		if last < 0 || compare(out[last], v) != 0 {
			out = append(out, v)
			continue
		}
		o := &out[last]
		o.Severity = max(o.Severity, v.Severity)
		o.Fixed, o.Title, o.Link = cmp.Or(o.Fixed, v.Fixed), cmp.Or(o.Title, v.Title), cmp.Or(o.Link, v.Link)
		o.Also = slices.Concat(o.Also, v.Also)
		slices.Sort(o.Also)
		o.Also = slices.Compact(o.Also)
	}
	return out
}

// OtherDigests returns the digests of other scanned images of a repository
// ("quay.io/org/app"), sorted, as suggestions for a missing scan.
func (r *Results) OtherDigests(repository, digest string) []string {
	var out []string
	for _, s := range r.scans {
		if s.name != "" && imageref.Split(s.name).Name() == repository {
			out = append(out, slices.DeleteFunc(slices.Clone(s.digests), func(d string) bool { return d == digest })...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// FilesWithoutDigest returns the files without a digest, which cannot be matched to an image,
// each with the scanner's name of the image: "app.json (app:latest)". They are
// sorted by name.
func (r *Results) FilesWithoutDigest() []string {
	var out []string
	for _, s := range r.scans {
		if len(s.digests) == 0 && s.manifest == "" {
			out = append(out, fmt.Sprintf("%s (%s)", s.file, cmp.Or(s.name, "no name")))
		}
	}
	return out
}
