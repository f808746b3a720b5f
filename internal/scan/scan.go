// Package scan reads what vulnerability scanners found in images: the JSON that
// Trivy and Grype write, a file for each image, any number of files.
//
// A scan belongs to an image by its digest, whatever the image is called. That
// nothing was found in an image is not the same as that nobody looked, and the
// package keeps the two apart. It scans nothing, asks nobody, and refuses a file
// that is neither of the two forms, with the place of what it cannot read; fields
// that it does not know are left alone.
//
// Start from [LoadFS] and [Results.Of].
package scan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
)

// Severity is how grave a vulnerability is, in one scale for all scanners.
type Severity int

// The severities, least first. Unknown is that of a vulnerability that nobody has
// rated yet, which says nothing of how grave it is.
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

// ParseSeverity reads what String writes, in any case, and what scanners say
// instead: nothing where nobody has rated a vulnerability, and "none".
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

// Vulnerability is what is known to be wrong with one package of an image.
type Vulnerability struct {
	ID        string   // "CVE-2026-1234" where it has such a name, else the scanner's: "GHSA-…"
	Also      []string // its other names, sorted
	Severity  Severity // the worst that any scan of the image says
	Package   string   // "openssl", "golang.org/x/net"
	Installed string   // version of the package; may be empty
	Fixed     string   // versions in which it is mended, as the scanner writes them; empty where there is none
	Title     string   // a line; may be empty
	Link      string   // a page about it, over http or https; may be empty
}

// Results is what several files say. It is not modified once it was read.
type Results struct {
	scans     []report
	by        map[string][]int    // the places in scans, by digest
	platforms map[string][]string // the manifests that an index was scanned by
}

// report is what one file says of one image.
type report struct {
	file     string
	name     string   // as the scanner calls the image
	digests  []string // of what was named; may be that of an index
	manifest string   // that was looked into; empty where the scanner does not say
	found    []Vulnerability
}

// newResults returns reports in the order of their files.
func newResults(scans []report) *Results {
	r := &Results{scans: scans, by: map[string][]int{}, platforms: map[string][]string{}}
	for i, s := range scans {
		all := s.digests
		if s.manifest != "" && !slices.Contains(all, s.manifest) {
			all = append(slices.Clone(all), s.manifest)
		}
		for _, d := range all {
			r.by[d] = append(r.by[d], i)
		}
		for _, d := range s.digests {
			if s.manifest != "" && d != s.manifest && !slices.Contains(r.platforms[d], s.manifest) {
				r.platforms[d] = append(r.platforms[d], s.manifest)
			}
		}
	}
	return r
}

// Of returns what was found in the image with a digest ("sha256:…"), by ID, package
// and version, each once, whichever scanners found it. known is false where no scan
// is of this image; then nothing is known of it.
//
// Of an index it is what was found in its images for single platforms as far as
// these were scanned by the digest of the index, or by their own where a scan tells
// that it belongs to the index.
func (r *Results) Of(digest string) (found []Vulnerability, known bool) {
	scans := slices.Clone(r.by[digest])
	for _, platform := range r.platforms[digest] {
		scans = append(scans, r.by[platform]...)
	}
	slices.Sort(scans)
	for _, i := range scans {
		found = append(found, r.scans[i].found...)
	}
	return merged(found), len(scans) > 0
}

// merged returns a list sorted by ID, package and version, without repeats: of those,
// the worst severity and the first of each text that is there.
func merged(list []Vulnerability) []Vulnerability {
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

// Near returns the digests of other images of a repository ("quay.io/org/app") that
// were scanned, sorted. One of them may be what was meant.
func (r *Results) Near(repository, digest string) []string {
	var out []string
	for _, s := range r.scans {
		if s.name != "" && imageref.Split(s.name).Name() == repository {
			out = append(out, slices.DeleteFunc(slices.Clone(s.digests), func(d string) bool { return d == digest })...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Loose returns the files that name no digest, and so tell of no image for certain,
// each with what the scanner calls the image: "app.json (app:latest)". They are in
// the order of their names.
func (r *Results) Loose() []string {
	var out []string
	for _, s := range r.scans {
		if len(s.digests) == 0 && s.manifest == "" {
			out = append(out, fmt.Sprintf("%s (%s)", s.file, cmp.Or(s.name, "no name")))
		}
	}
	return out
}
