package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/scan"
)

// Rules about vulnerabilities. The policy has a separate field for vulnerabilityAdded. A finding of any other
// rule lists several vulnerabilities.
const (
	vulnerabilityAdded    = "vulnerabilities.added"
	vulnerabilitiesGone   = "vulnerabilities.gone"
	vulnerabilitiesStayed = "vulnerabilities.stayed"
)

func vulnerabilityRules() []RuleInfo {
	return []RuleInfo{
		{vulnerabilityAdded, Critical, "new vulnerability", "it may be exploited through the operator; with --scan, severity as rated by the scanner, medium if unrated"},
		{vulnerabilitiesGone, Info, "vulnerabilities no longer found", "fixed by the upgrade"},
		{"vulnerabilities.not-scanned", Medium, "image without a scan", "without a scan result, vulnerabilities of this image are unknown"},
		{vulnerabilitiesStayed, Info, "vulnerabilities not fixed", "the upgrade does not fix them"},
	}
}

// Vulnerability is a vulnerability in the images of one operator. It may affect several packages
// and images.
type Vulnerability struct {
	ID       string   `json:"id" form:"required" doc:"CVE, or else the scanner's ID"`
	Also     []string `json:"aliases,omitempty" doc:"its other names"`
	Severity string   `json:"severity" form:"required enum=critical|high|medium|low|negligible|unknown" doc:"highest rating of a scanner; unknown if there is no rating"`
	Packages []string `json:"packages" form:"required" doc:"in which it was found, with their versions"`
	Images   []string `json:"images" form:"required" doc:"in which it was found"`
	Fixed    string   `json:"fixed,omitempty" doc:"versions that fix it"`
	Title    string   `json:"title,omitempty"`
	Link     string   `json:"link,omitempty" doc:"a page about it"`
}

// maxListed is the maximum number of vulnerabilities that a finding lists.
const maxListed = 1000

// vulnerabilityList is the detail of a finding about vulnerabilities.
type vulnerabilityList struct {
	listed        []Vulnerability // most severe first; at most maxListed
	counts        map[string]int  // number of all vulnerabilities by scanner severity; nil if there is only one
	partlyScanned bool            // some images were not scanned
}

// vulnerabilities returns the listed vulnerabilities of a finding.
func (f Finding) vulnerabilities() []Vulnerability {
	v, _ := f.detail.(vulnerabilityList)
	return v.listed
}

func (v vulnerabilityList) parts(whole part) []part {
	var out []part
	for _, one := range v.listed {
		whole.Vulnerabilities = append([]string{one.ID}, one.Also...)
		out = append(out, whole)
	}
	if len(out) == 0 || v.countUnlisted() > 0 {
		whole.Vulnerabilities = nil
		out = append(out, whole)
	}
	return out
}

// countUnlisted returns the number of vulnerabilities that are counted, but not listed.
func (v vulnerabilityList) countUnlisted() int {
	n := -len(v.listed)
	for _, count := range v.counts {
		n += count
	}
	return max(n, 0)
}

func (v vulnerabilityList) selectParts(f Finding, indexes []int) Finding {
	counts := map[string]int{}
	if indexes[len(indexes)-1] == len(v.listed) { // the last part stands for all unlisted vulnerabilities
		indexes = indexes[:len(indexes)-1]
		maps.Copy(counts, v.counts)
		for _, one := range v.listed {
			counts[one.Severity]--
		}
	}
	v.listed, v.counts = selectItems(v.listed, indexes), counts
	for _, one := range v.listed {
		counts[one.Severity]++
	}
	f.Message, f.detail = v.summary(f.Rule), v
	return f
}

func (v vulnerabilityList) addTo(out *findingObject) {
	out.Vulnerabilities, out.Counts = v.listed, v.counts
}

// summary returns the message of a finding about several vulnerabilities.
func (v vulnerabilityList) summary(rule string) string {
	words := map[string]string{vulnerabilitiesGone: "no longer found", vulnerabilitiesStayed: "not fixed by the upgrade"}[rule]
	total := 0
	var counts []string
	for _, s := range scan.Severities() {
		if n := v.counts[s.String()]; n > 0 {
			counts, total = append(counts, fmt.Sprintf("%d %s", n, s)), total+n
		}
	}
	var ids []string
	for _, one := range v.listed[:min(len(v.listed), 20)] {
		ids = append(ids, one.ID)
	}
	message := fmt.Sprintf("%s %s (%s): %s", pluralize(total, "vulnerability", "vulnerabilities"), words, strings.Join(counts, ", "), strings.Join(ids, ", "))
	if total > len(ids) {
		message += fmt.Sprintf(" and %d more", total-len(ids))
	}
	if v.partlyScanned {
		message += "; some images were not scanned"
	}
	return message
}

// severityOf converts a scanner severity. An unrated vulnerability is medium, so that it gets a
// review.
func severityOf(s scan.Severity) Severity {
	return map[scan.Severity]Severity{
		scan.Critical: Critical, scan.High: High, scan.Medium: Medium, scan.Low: Low, scan.Negligible: Info, scan.Unknown: Medium,
	}[s]
}

// imageScans contains the scan results for the images of an operator, before or after the change.
type imageScans struct {
	images    map[string]imageUse  // by digest, or by name if there is no digest
	found     map[string]*exposure // vulnerabilities by ID
	ids       map[string]bool      // IDs and aliases of all vulnerabilities
	unscanned []string             // keys of images without a scan result, sorted
}

// exposure is a vulnerability and the location of the first affected image.
type exposure struct {
	Vulnerability
	severity scan.Severity
	at       imageUse
}

// compareScans compares the scan results of each operator whose images changed. A vulnerability
// that is in several packages or images of an operator counts once.
func compareScans(c *comparison) {
	if c.opt.Scans == nil {
		return
	}
	for _, file := range c.opt.Scans.FilesWithoutDigest() {
		c.note("%s: the scan has no image digest", file)
	}
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range unionKeys(old, now) {
		was, _ := c.before.pin(operator)
		is, _ := c.after.pin(operator)
		before, after := runningImages(old[operator], was.Image), runningImages(now[operator], is.Image)
		if maps.EqualFunc(before, after, func(imageUse, imageUse) bool { return true }) {
			continue
		}
		d := scanDiff{c: c, pin: pinDiff{c, was, is}, operator: operator, was: scansOf(c.opt.Scans, before), is: scansOf(c.opt.Scans, after)}
		d.compare()
	}
}

// runningImages returns the first location of each image, by digest or, if there is none, by
// reference. It omits the bundle image, which some bundles list as a related image.
func runningImages(uses []imageUse, bundle string) map[string]imageUse {
	out, bundleDigest := map[string]imageUse{}, imageref.DigestIn(bundle)
	for _, u := range uses {
		key := cmp.Or(u.Digest, u.String())
		if _, seen := out[key]; !seen && (u.where != nil || key != bundleDigest) {
			out[key] = u
		}
	}
	return out
}

// scansOf returns the scan results for images.
func scansOf(results *scan.Results, images map[string]imageUse) imageScans {
	s := imageScans{images: images, found: map[string]*exposure{}, ids: map[string]bool{}}
	for _, key := range sortedKeys(images) {
		found, ok := results.Vulnerabilities(key)
		if !ok {
			s.unscanned = append(s.unscanned, key)
		}
		for _, v := range found {
			s.add(v, images[key])
		}
	}
	return s
}

// add adds a vulnerability that was found in the image at u.
func (s imageScans) add(v scan.Vulnerability, u imageUse) {
	e := s.found[v.ID]
	if e == nil {
		e = &exposure{Vulnerability: Vulnerability{ID: v.ID}, at: u}
		s.found[v.ID] = e
	}
	s.ids[v.ID] = true
	for _, also := range v.Aliases {
		s.ids[also] = true
	}
	e.severity = max(e.severity, v.Severity)
	e.Severity = e.severity.String()
	e.Fixed, e.Title, e.Link = cmp.Or(e.Fixed, v.Fixed), cmp.Or(e.Title, v.Title), cmp.Or(e.Link, v.Link)
	for _, field := range []struct {
		list   *[]string
		values []string
	}{{&e.Also, v.Aliases}, {&e.Packages, []string{strings.TrimSpace(v.Package + " " + v.Installed)}}, {&e.Images, []string{u.String()}}} {
		for _, value := range field.values {
			if at, found := slices.BinarySearch(*field.list, value); !found {
				*field.list = slices.Insert(*field.list, at, value)
			}
		}
	}
}

// scanDiff compares the scan results for an operator before and after the change.
type scanDiff struct {
	c        *comparison
	pin      pinDiff
	operator string
	was, is  imageScans
}

// compare reports added, fixed and remaining vulnerabilities, and images without a scan result.
func (d scanDiff) compare() {
	var gone, stayed []*exposure
	for _, id := range sortedKeys(d.is.found) {
		if e := d.is.found[id]; !d.was.ids[id] {
			d.reportAdded(e)
		} else {
			stayed = append(stayed, e)
		}
	}
	for _, id := range sortedKeys(d.was.found) {
		e := d.was.found[id]
		if names := append([]string{id}, e.Also...); !slices.ContainsFunc(names, func(name string) bool { return d.is.ids[name] }) {
			gone = append(gone, e)
		}
	}
	d.reportList(vulnerabilitiesGone, gone, len(d.is.unscanned) > 0)
	d.reportList(vulnerabilitiesStayed, stayed, false)
	d.reportUnscanned()
}

// add adds a finding at the location of an image. If only the lock contains the image, the location
// is the pin.
func (d scanDiff) add(rule string, at imageUse, f Finding, capped ...Severity) {
	f.Operator, f.path = d.operator, at.containerPath
	if at.where == nil {
		f.Place = d.pin.region()
	}
	f.explains = noField()
	d.c.add(rule, at.where, f, capped...)
}

// reportAdded reports a vulnerability that was not found before.
func (d scanDiff) reportAdded(e *exposure) {
	message := diag.Some(e.Packages, 4) + " in " + diag.Some(sortedKeys(imageNames(e.Images)), 3)
	if e.Fixed != "" {
		message += ", fixed in " + e.Fixed
	}
	if e.Title != "" {
		message += ": " + e.Title
	}
	if len(d.was.unscanned) > 0 {
		message += " (possibly not new: some previous images were not scanned)"
	}
	d.add(vulnerabilityAdded, e.at, Finding{Field: e.ID, Message: message, detail: vulnerabilityList{listed: []Vulnerability{e.Vulnerability}}}, severityOf(e.severity))
}

// imageNames returns the set of image names, without tags and digests.
func imageNames(images []string) map[string]bool {
	out := map[string]bool{}
	for _, image := range images {
		out[imageref.Split(image).Name()] = true
	}
	return out
}

// reportList adds one finding about list, which is sorted by severity. partlyScanned means that
// some images were not scanned.
func (d scanDiff) reportList(rule string, list []*exposure, partlyScanned bool) {
	if len(list) == 0 {
		return
	}
	rank := func(e *exposure) int { return slices.Index(scan.Severities(), e.severity) }
	slices.SortStableFunc(list, func(a, b *exposure) int { return cmp.Compare(rank(a), rank(b)) })
	v := vulnerabilityList{counts: map[string]int{}, partlyScanned: partlyScanned}
	for _, e := range list {
		v.counts[e.Severity]++
		if len(v.listed) < maxListed {
			v.listed = append(v.listed, e.Vulnerability)
		}
	}
	d.add(rule, imageUse{}, Finding{Message: v.summary(rule), detail: v})
}

// reportUnscanned reports added and removed images without a scan result.
func (d scanDiff) reportUnscanned() {
	for _, key := range d.is.unscanned {
		if _, ok := d.was.images[key]; !ok {
			u := d.is.images[key]
			d.add("vulnerabilities.not-scanned", u, Finding{Field: u.at, After: u.String(), Message: d.missingScanReason(u)})
		}
	}
	for _, key := range d.was.unscanned {
		if _, ok := d.is.images[key]; !ok {
			u := d.was.images[key]
			d.add("vulnerabilities.not-scanned", u, Finding{Field: u.at, Before: u.String(), Message: d.missingScanReason(u) + ", so new vulnerabilities cannot be recognized"}, Low)
		}
	}
}

// missingScanReason explains why an image has no scan result.
func (d scanDiff) missingScanReason(u imageUse) string {
	if u.Digest == "" {
		return u.String() + " has no digest, so scans cannot be matched"
	}
	digests := d.c.opt.Scans.OtherDigests(u.Name(), u.Digest)
	if len(digests) == 0 {
		return "no scan for " + u.Name()
	}
	return fmt.Sprintf("no scan for %s with this digest, only for %s: scan the digest in the lock", u.Name(), diag.Some(digests, 2))
}
