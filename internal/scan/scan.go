// Package scan reads JSON reports of the vulnerability scanners Trivy and Grype, with one image in
// each file.
//
// It assigns reports to images by digest, and not by name. It distinguishes an image without vulnerabilities
// from an image without a scan. The package does not scan images, and makes no requests. It rejects files in
// other formats, and ignores unknown fields.
//
// Start from [LoadFS] and [Results.Vulnerabilities].
package scan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// Severity is the severity of a vulnerability, on one scale for all scanners.
type Severity int

// Severities in ascending order. Unknown means that the scanner has no rating.
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

// Severities returns all severities, highest first, and Unknown last.
func Severities() []Severity { return []Severity{Critical, High, Medium, Low, Negligible, Unknown} }

// ParseSeverity parses a severity, ignoring case. It accepts the results of String and two other values that
// scanners write: "" is Unknown, and "none" is Negligible.
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
	return Unknown, fmt.Errorf("severity %q: must be one of critical, high, medium, low, negligible, unknown", text)
}

// Vulnerability is a known vulnerability of one package in an image.
type Vulnerability struct {
	ID        string   // CVE, such as "CVE-2026-1234", or otherwise the ID of the scanner, such as "GHSA-…"
	Aliases   []string // other IDs, sorted
	Severity  Severity // highest rating in all scans of the image
	Package   string   // such as "openssl" or "golang.org/x/net"
	Installed string   // installed version of the package; may be empty
	Fixed     string   // versions with a fix, as written by the scanner; may be empty
	Title     string   // one line of text; may be empty
	Link      string   // URL of a page about the vulnerability; may be empty
}

// Results contains the content of all scan reports. It is immutable.
type Results struct {
	scans     []imageScan
	byDigest  map[string][]int    // indexes in scans, by image digest
	platforms map[string][]string // digests of scanned platform images, by digest of the image index
}

// imageScan is the content of one scan report.
type imageScan struct {
	file     string
	name     string   // image name in the report
	digests  []string // digests of the image, or of its index
	manifest string   // digest of the scanned platform image; may be empty
	found    []Vulnerability
}

// newResults indexes scans, which are sorted by file name.
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

// Vulnerabilities returns the vulnerabilities of the image with a digest such as "sha256:…". They
// are sorted by ID, package and version. A vulnerability that several scanners report is returned
// once. known is false if there is no scan of the image.
//
// For an image index, Vulnerabilities returns the vulnerabilities of its platform images. This includes a platform
// image that was scanned by the digest of the index, or by its own digest in a report that also has the digest of the
// index.
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

// mergeVulnerabilities sorts a list by ID, package and version, and merges vulnerabilities that are equal in these
// fields. A merged vulnerability has the highest severity and, for each other field, the first text that is not empty.
func mergeVulnerabilities(list []Vulnerability) []Vulnerability {
	list = slices.Clone(list)
	compareID := func(a, b Vulnerability) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Package, b.Package), strings.Compare(a.Installed, b.Installed))
	}
	slices.SortStableFunc(list, compareID)
	var out []Vulnerability
	for _, v := range list {
		last := len(out) - 1
		if last < 0 || compareID(out[last], v) != 0 {
			out = append(out, v)
			continue
		}
		o := &out[last]
		o.Severity = max(o.Severity, v.Severity)
		o.Fixed, o.Title, o.Link = cmp.Or(o.Fixed, v.Fixed), cmp.Or(o.Title, v.Title), cmp.Or(o.Link, v.Link)
		o.Aliases = slices.Concat(o.Aliases, v.Aliases)
		slices.Sort(o.Aliases)
		o.Aliases = slices.Compact(o.Aliases)
	}
	return out
}

// OtherDigests returns the digests of other scanned images in the same repository, such as "quay.io/org/app",
// sorted. These digests explain why the image with the given digest has no scan.
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

// FilesWithoutDigest returns the reports that belong to no image because they contain no digest. The image name
// follows each report, as in "app.json (app:latest)". The reports are sorted by file name.
func (r *Results) FilesWithoutDigest() []string {
	var out []string
	for _, s := range r.scans {
		if len(s.digests) == 0 && s.manifest == "" {
			out = append(out, fmt.Sprintf("%s (%s)", s.file, cmp.Or(s.name, "no name")))
		}
	}
	return out
}
