package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/imageref"
	"github.com/quayside/quayside/internal/scan"
)

// Rules about vulnerabilities. The first has its own policy; the others are about many
// vulnerabilities.
const (
	vulnerabilityAdded    = "vulnerabilities.added"
	vulnerabilitiesGone   = "vulnerabilities.gone"
	vulnerabilitiesStayed = "vulnerabilities.stayed"
)

func vulnerabilityRules() []Rule {
	return []Rule{
		{vulnerabilityAdded, Critical, "new vulnerability", "it may be exploited through the operator; with --scan, severity as rated by the scanner, medium if unrated"},
		{vulnerabilitiesGone, Info, "vulnerabilities no longer found", "fixed by the upgrade"},
		{"vulnerabilities.not-scanned", Medium, "image without a scan", "without a scan result, vulnerabilities of this image are unknown"},
		{vulnerabilitiesStayed, Info, "vulnerabilities not fixed", "the upgrade does not fix them"},
	}
}

// Vulnerability is a vulnerability in the images of an operator, in any number of
// packages.
type Vulnerability struct {
	ID       string   `json:"id" form:"required" doc:"its CVE where it has one, else as the scanner calls it"`
	Also     []string `json:"aliases,omitempty" doc:"its other names"`
	Severity string   `json:"severity" form:"required enum=critical|high|medium|low|negligible|unknown" doc:"highest rating of a scanner; unknown if there is no rating"`
	Packages []string `json:"packages" form:"required" doc:"in which it was found, with their versions"`
	Images   []string `json:"images" form:"required" doc:"in which it was found"`
	Fixed    string   `json:"fixed,omitempty" doc:"versions in which it is mended"`
	Title    string   `json:"title,omitempty"`
	Link     string   `json:"link,omitempty" doc:"a page about it"`
}

// maxListed limits the vulnerabilities in a finding about many of them.
const maxListed = 1000

// severityOf returns the severity of a finding for that of a scanner. Unrated
// vulnerabilities are Medium, for review.
func severityOf(s scan.Severity) Severity {
	return map[scan.Severity]Severity{
		scan.Critical: Critical, scan.High: High, scan.Medium: Medium, scan.Low: Low, scan.Negligible: Info, scan.Unknown: Medium,
	}[s]
}

// scanned is the set of scan results for the images of one operator on one side.
type scanned struct {
	images map[string]use       // by digest, or by name without one
	found  map[string]*exposure // by ID
	called map[string]bool      // all IDs and aliases
	dark   []string             // keys of images without a scan, sorted
}

// exposure is one vulnerability, and the first affected image.
type exposure struct {
	Vulnerability
	severity scan.Severity
	at       use
}

// compareScans compares the scan results of each operator with changed images. A
// vulnerability counts once for each operator, in any number of packages and images.
func compareScans(c *comparison) {
	if c.opt.Scans == nil {
		return
	}
	for _, file := range c.opt.Scans.FilesWithoutDigest() {
		c.note("%s: the scan has no image digest", file)
	}
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range union(old, now) {
		was, _ := c.before.pin(operator)
		is, _ := c.after.pin(operator)
		before, after := runningImages(old[operator], was.Image), runningImages(now[operator], is.Image)
		if maps.EqualFunc(before, after, func(use, use) bool { return true }) {
			continue
		}
		d := scanDiff{c: c, pin: pinDiff{c, was, is}, operator: operator, was: scansOf(c.opt.Scans, before), is: scansOf(c.opt.Scans, after)}
		d.run()
	}
}

// runningImages returns the running images by digest, or by name, each with its first use.
// It omits the bundle image, which the bundle itself lists.
func runningImages(uses []use, bundle string) map[string]use {
	out, itself := map[string]use{}, imageref.DigestIn(bundle)
	for _, u := range uses {
		key := cmp.Or(u.Digest, u.String())
		if _, seen := out[key]; !seen && (u.where != nil || key != itself) {
			out[key] = u
		}
	}
	return out
}

func scansOf(results *scan.Results, images map[string]use) scanned {
	s := scanned{images: images, found: map[string]*exposure{}, called: map[string]bool{}}
	for _, key := range names(images) {
		found, known := results.Vulnerabilities(key)
		if !known {
			s.dark = append(s.dark, key)
		}
		for _, v := range found {
			s.add(v, images[key])
		}
	}
	return s
}

func (s scanned) add(v scan.Vulnerability, u use) {
	e := s.found[v.ID]
	if e == nil {
		e = &exposure{Vulnerability: Vulnerability{ID: v.ID}, at: u}
		s.found[v.ID] = e
	}
	s.called[v.ID] = true
	for _, also := range v.Also {
		s.called[also] = true
	}
	e.severity = max(e.severity, v.Severity)
	e.Severity = e.severity.String()
	e.Fixed, e.Title, e.Link = cmp.Or(e.Fixed, v.Fixed), cmp.Or(e.Title, v.Title), cmp.Or(e.Link, v.Link)
	for _, of := range []struct {
		list  *[]string
		words []string
	}{{&e.Also, v.Also}, {&e.Packages, []string{strings.TrimSpace(v.Package + " " + v.Installed)}}, {&e.Images, []string{u.String()}}} {
		for _, word := range of.words {
			if at, there := slices.BinarySearch(*of.list, word); !there {
				*of.list = slices.Insert(*of.list, at, word)
			}
		}
	}
}

// scanDiff compares one operator on both sides.
type scanDiff struct {
	c        *comparison
	pin      pinDiff
	operator string
	was, is  scanned
}

func (d scanDiff) run() {
	var gone, stayed []*exposure
	for _, id := range names(d.is.found) {
		if e := d.is.found[id]; !d.was.called[id] {
			d.added(e)
		} else {
			stayed = append(stayed, e)
		}
	}
	for _, id := range names(d.was.found) {
		e := d.was.found[id]
		if names := append([]string{id}, e.Also...); !slices.ContainsFunc(names, func(name string) bool { return d.is.called[name] }) {
			gone = append(gone, e)
		}
	}
	d.many(vulnerabilitiesGone, gone, len(d.is.dark) > 0)
	d.many(vulnerabilitiesStayed, stayed, false)
	d.unknown()
}

// add adds a finding at the place of an image: in a manifest, or at the pin.
func (d scanDiff) add(rule string, at use, f Finding, capped ...Severity) {
	f.Operator, f.steps = d.operator, at.steps
	if at.where == nil {
		f.Place = d.pin.place()
	}
	f.covers = nothing()
	d.c.add(rule, at.where, f, capped...)
}

func (d scanDiff) added(e *exposure) {
	words := diag.Some(e.Packages, 4) + " in " + diag.Some(names(imageNames(e.Images)), 3)
	if e.Fixed != "" {
		words += ", fixed in " + e.Fixed
	}
	if e.Title != "" {
		words += ": " + e.Title
	}
	if len(d.was.dark) > 0 {
		words += " (new, as far as the images were scanned)"
	}
	d.add(vulnerabilityAdded, e.at, Finding{Field: e.ID, Message: words, Vulnerabilities: []Vulnerability{e.Vulnerability}}, severityOf(e.severity))
}

// imageNames returns the images without tag and digest.
func imageNames(images []string) map[string]bool {
	out := map[string]bool{}
	for _, image := range images {
		out[imageref.Split(image).Name()] = true
	}
	return out
}

// many adds one finding about a list of vulnerabilities, the worst first.
func (d scanDiff) many(rule string, list []*exposure, partly bool) {
	if len(list) == 0 {
		return
	}
	rank := func(e *exposure) int { return slices.Index(scan.Severities(), e.severity) }
	slices.SortStableFunc(list, func(a, b *exposure) int { return cmp.Compare(rank(a), rank(b)) })
	f := Finding{Counts: map[string]int{}, partly: partly}
	for _, e := range list {
		f.Counts[e.Severity]++
		if len(f.Vulnerabilities) < maxListed {
			f.Vulnerabilities = append(f.Vulnerabilities, e.Vulnerability)
		}
	}
	f.Message = f.tally(rule)
	d.add(rule, use{}, f)
}

// tally summarizes the vulnerabilities of a finding about many of them.
func (f Finding) tally(rule string) string {
	words := map[string]string{vulnerabilitiesGone: "no longer found", vulnerabilitiesStayed: "not fixed by the upgrade"}[rule]
	total := 0
	var counts []string
	for _, s := range scan.Severities() {
		if n := f.Counts[s.String()]; n > 0 {
			counts, total = append(counts, fmt.Sprintf("%d %s", n, s)), total+n
		}
	}
	var ids []string
	for _, v := range f.Vulnerabilities[:min(len(f.Vulnerabilities), 20)] {
		ids = append(ids, v.ID)
	}
	message := fmt.Sprintf("%s %s (%s): %s", pluralize(total, "vulnerability", "vulnerabilities"), words, strings.Join(counts, ", "), strings.Join(ids, ", "))
	if total > len(ids) {
		message += fmt.Sprintf(" and %d more", total-len(ids))
	}
	if f.partly {
		message += "; as far as the images were scanned"
	}
	return message
}

// unknown reports added and removed images without a scan.
func (d scanDiff) unknown() {
	for _, key := range d.is.dark {
		if _, stays := d.was.images[key]; !stays {
			u := d.is.images[key]
			d.add("vulnerabilities.not-scanned", u, Finding{Field: u.at, After: u.String(), Message: d.dark(u)})
		}
	}
	for _, key := range d.was.dark {
		if _, stays := d.is.images[key]; !stays {
			u := d.was.images[key]
			d.add("vulnerabilities.not-scanned", u, Finding{Field: u.at, Before: u.String(), Message: d.dark(u) + ", so new vulnerabilities cannot be recognised"}, Low)
		}
	}
}

// dark explains why an image has no scan result.
func (d scanDiff) dark(u use) string {
	if u.Digest == "" {
		return u.String() + " has no digest, so scans cannot be matched"
	}
	near := d.c.opt.Scans.OtherDigests(u.Name(), u.Digest)
	if len(near) == 0 {
		return "no scan for " + u.Name()
	}
	return fmt.Sprintf("no scan for %s with this digest, only for %s: scan the digest in the lock", u.Name(), diag.Some(near, 2))
}
