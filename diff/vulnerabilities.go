package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/scan"
)

// Rules about vulnerabilities. The first has a policy of its own; the others are about
// many at once.
const (
	vulnerabilityAdded    = "vulnerabilities.added"
	vulnerabilitiesGone   = "vulnerabilities.gone"
	vulnerabilitiesStayed = "vulnerabilities.stayed"
)

func vulnerabilityRules() []Rule {
	return []Rule{
		{vulnerabilityAdded, Critical, "vulnerability that a scan did not find before", "whoever reaches the operator may make use of it; with --scan, as grave as the scanner says, and medium where nobody has rated it"},
		{vulnerabilitiesGone, Info, "vulnerabilities no longer found", "this is what the upgrade mends"},
		{"vulnerabilities.not-scanned", Medium, "image that no scan is of", "what is wrong with it is not known: that nothing is listed does not mean that nothing was found"},
		{vulnerabilitiesStayed, Info, "vulnerabilities found before and after", "the upgrade does not mend them"},
	}
}

// Vulnerability is one that a scanner found in the images of an operator, in however
// many of their packages.
type Vulnerability struct {
	ID       string   `json:"id" form:"required" doc:"its CVE where it has one, else as the scanner calls it"`
	Also     []string `json:"also,omitempty" doc:"its other names"`
	Severity string   `json:"severity" form:"required enum=critical|high|medium|low|negligible|unknown" doc:"the worst that a scanner says; unknown where nobody has rated it"`
	Packages []string `json:"packages" form:"required" doc:"in which it was found, with their versions"`
	Images   []string `json:"images" form:"required" doc:"in which it was found"`
	Fixed    string   `json:"fixed,omitempty" doc:"versions in which it is mended"`
	Title    string   `json:"title,omitempty"`
	Link     string   `json:"link,omitempty" doc:"a page about it"`
}

// maxListed bounds how many vulnerabilities a finding about many of them lists.
const maxListed = 1000

// graveness returns the severity of a finding for that of a scanner. What nobody has
// rated is for a reviewer to look at.
func graveness(s scan.Severity) Severity {
	return map[scan.Severity]Severity{
		scan.Critical: Critical, scan.High: High, scan.Medium: Medium, scan.Low: Low, scan.Negligible: Info, scan.Unknown: Medium,
	}[s]
}

// scanned is what scans say of the images of one operator on one side.
type scanned struct {
	images map[string]use       // by digest, else by name
	found  map[string]*exposure // by ID
	called map[string]bool      // the IDs, and all other names
	dark   []string             // the keys of images that no scan is of, sorted
}

// exposure is one vulnerability, and the first image that it is found in.
type exposure struct {
	Vulnerability
	severity scan.Severity
	at       use
}

// compareScans compares what scanners found in the images of each operator whose
// images change. A vulnerability counts once for an operator, in however many
// packages and images it is.
func compareScans(c *comparison) {
	if c.opt.Scans == nil {
		return
	}
	for _, file := range c.opt.Scans.Loose() {
		c.note("%s: this scan names no digest of an image", file)
	}
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range union(old, now) {
		was, _ := c.before.pin(operator)
		is, _ := c.after.pin(operator)
		before, after := running(old[operator], was.Image), running(now[operator], is.Image)
		if maps.EqualFunc(before, after, func(use, use) bool { return true }) {
			continue
		}
		d := scanDiff{c: c, pin: pinDiff{c, was, is}, operator: operator, was: scansOf(c.opt.Scans, before), is: scansOf(c.opt.Scans, after)}
		d.run()
	}
}

// running returns the images that are run, by digest, else by name, each with its
// first use: the bundle, which lists itself, is none of them.
func running(uses []use, bundle string) map[string]use {
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
		found, known := results.Of(key)
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

// scanDiff is one operator on both sides.
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

// add adds a finding at the place of an image: in a manifest, else at the pin.
func (d scanDiff) add(rule string, at use, f Finding, capped ...Severity) {
	f.Operator, f.steps = d.operator, at.steps
	if at.where == nil {
		f.Place = d.pin.place()
	}
	d.c.add(rule, at.where, f, capped...)
}

func (d scanDiff) added(e *exposure) {
	words := some(e.Packages, 4) + " in " + some(names(imageNames(e.Images)), 3)
	if e.Fixed != "" {
		words += ", mended in " + e.Fixed
	}
	if e.Title != "" {
		words += ": " + e.Title
	}
	if len(d.was.dark) > 0 {
		words += " (not found before, as far as the images were scanned)"
	}
	d.add(vulnerabilityAdded, e.at, Finding{Field: e.ID, Message: words, Vulnerabilities: []Vulnerability{e.Vulnerability}}, graveness(e.severity))
}

// imageNames returns images without tag and digest.
func imageNames(images []string) map[string]bool {
	out := map[string]bool{}
	for _, image := range images {
		out[imageref.Split(image).Name()] = true
	}
	return out
}

// many adds one finding about vulnerabilities, the worst first.
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

// tally describes the vulnerabilities of a finding of a rule about many of them.
func (f Finding) tally(rule string) string {
	words := map[string]string{vulnerabilitiesGone: "no longer found", vulnerabilitiesStayed: "found before and after"}[rule]
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
	message := fmt.Sprintf("%s %s (%s): %s", plural(total, "vulnerability", "vulnerabilities"), words, strings.Join(counts, ", "), strings.Join(ids, ", "))
	if total > len(ids) {
		message += fmt.Sprintf(" and %d more", total-len(ids))
	}
	if f.partly {
		message += "; as far as the images were scanned"
	}
	return message
}

// unknown names the images of which nobody knows what is wrong with them, of those
// that come and go.
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
			d.add("vulnerabilities.not-scanned", u, Finding{Field: u.at, Before: u.String(), Message: d.dark(u) + ", so what is new after it is not certain"}, Low)
		}
	}
}

// dark says why nothing is known of an image.
func (d scanDiff) dark(u use) string {
	if u.Digest == "" {
		return u.String() + " has no digest that a scan could be of"
	}
	near := d.c.opt.Scans.Near(u.Name(), u.Digest)
	if len(near) == 0 {
		return "there is no scan of " + u.Name()
	}
	return fmt.Sprintf("there is no scan of %s by this digest, but of %s: scan it by the digest that the lock has", u.Name(), some(near, 2))
}
