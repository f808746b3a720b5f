// Package lifecycle is what a catalog says of how long a version of an operator
// is supported, and where: the meaning of documents of the schema
// io.openshift.operators.lifecycles.v1alpha1 (openshift/enhancements,
// enhancements/olm/lifecycle-and-compatibility.md).
//
// A day is text like "2027-01-31" and is always given: the package has no clock.
// That nothing is said, a nil [Version], is not the same as support that has
// ended.
//
// Start from [Find], [Version.On] and [Version.Fits].
package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schema is the schema of the documents.
const Schema = "io.openshift.operators.lifecycles.v1alpha1"

// OpenShift is the name of the platform that a workspace says the version of.
const OpenShift = "openshift"

// Version is what is said of all versions of an operator that begin alike.
type Version struct {
	Name      string     `json:"version" form:"required nonempty" doc:"MAJOR.MINOR of the operator's version."`                  // "4.12"
	Phases    []Phase    `json:"phases" form:"required" doc:"The phases of its support, each beginning the day after the last."` // at least one
	Platforms []Platform `json:"platforms,omitempty" doc:"What it is said to run on. Absent: nothing is said."`
}

// Phase is a time of support. Both days belong to it.
type Phase struct {
	Name  string `json:"name" form:"required nonempty" doc:"What the vendor calls the phase."`        // "Maintenance support"
	Start string `json:"startDate" form:"required nonempty" doc:"The first day, such as 2026-01-31."` // "2025-05-26"
	End   string `json:"endDate" form:"required nonempty" doc:"The last day, such as 2026-12-31."`
}

// Platform is a version of a platform.
type Platform struct {
	Name    string `json:"name" form:"required nonempty" doc:"The platform, such as openshift."`
	Version string `json:"version" form:"required nonempty" doc:"MAJOR.MINOR of the platform's version."` // "4.17"
}

// State is what a day is to the support of a version.
type State string

// The states. Before the first phase a version is not supported yet; after the
// last one its users are on their own.
const (
	Coming    State = "coming"
	Supported State = "supported"
	Ended     State = "ended"
)

// Support is what is said of a version on one day.
type Support struct {
	State State  `json:"state" form:"enum=coming|supported|ended" doc:"Whether the version is supported on the day: coming before its first phase, ended after its last."`
	Phase string `json:"phase,omitempty" doc:"The phase that the day is in."`
	From  string `json:"from" doc:"The first day of support."`
	Until string `json:"until" doc:"The last day of support."`
}

// Minor returns what the entry for a version is called, "1.2" for "1.2.3-rc.1";
// "" for what begins otherwise.
func Minor(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	if name := major + "." + rest; CheckMinor(name) == nil {
		return name
	}
	return ""
}

// CheckMinor returns what is wrong with a MAJOR.MINOR, nil where nothing is.
func CheckMinor(name string) error {
	major, minor, ok := strings.Cut(name, ".")
	for _, part := range []string{major, minor} {
		n, err := strconv.ParseUint(part, 10, 64)
		ok = ok && err == nil && strconv.FormatUint(n, 10) == part
	}
	if !ok {
		return fmt.Errorf("version %q: want MAJOR.MINOR, such as 4.12", name)
	}
	return nil
}

// CheckDay returns what is wrong with a day, nil where nothing is.
func CheckDay(day string) error {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fmt.Errorf("day %q: want a date like 2027-01-31", day)
	}
	return nil
}

// Find returns what is said of a version; nil where that is nothing.
func Find(all []Version, version string) *Version {
	name := Minor(version)
	for i := range all {
		if all[i].Name == name && name != "" {
			return &all[i]
		}
	}
	return nil
}

// Check returns what is wrong with a phase by itself. One has two days or more.
func (p Phase) Check() error {
	for _, day := range []string{p.Start, p.End} {
		if err := CheckDay(day); err != nil {
			return err
		}
	}
	if p.End <= p.Start {
		return fmt.Errorf("phase %q begins on %s and ends on %s: want a later day", p.Name, p.Start, p.End)
	}
	return nil
}

// Follows returns what is wrong with p as the phase after another one. The days
// of both are right by themselves.
func (p Phase) Follows(last Phase) error {
	if want := After(last.End, 1); p.Start != want {
		return fmt.Errorf("phase %q begins on %s: want %s, the day after phase %q ends", p.Name, p.Start, want, last.Name)
	}
	return nil
}

// After returns the day so many days after another one, "" where that is none.
func After(day string, days int) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return t.AddDate(0, 0, days).Format(time.DateOnly)
}

// On returns what is said of a version on a day; nil where nothing is said.
func (v *Version) On(day string) *Support {
	if v == nil || len(v.Phases) == 0 || CheckDay(day) != nil {
		return nil
	}
	s := &Support{State: Ended, From: v.Phases[0].Start, Until: v.Ends()}
	if day < s.From {
		s.State = Coming
	}
	for _, p := range v.Phases {
		if p.Start <= day && day <= p.End {
			s.State, s.Phase = Supported, p.Name
		}
	}
	return s
}

// Ends returns the last day of support, "" where nothing is said.
func (v *Version) Ends() string {
	if v == nil || len(v.Phases) == 0 {
		return ""
	}
	return v.Phases[len(v.Phases)-1].End
}

// EndsWithin reports whether a version is supported on a day, and no longer so
// many days after it.
func (v *Version) EndsWithin(day string, days int) bool {
	s := v.On(day)
	return s != nil && s.State == Supported && s.Until < After(day, days)
}

// Fits returns the versions of a platform that v is said to run on, in their
// order, and whether a version of it is among them. Where nothing is said of the
// platform, or version is none, everything fits.
func (v *Version) Fits(platform, version string) (said []string, fits bool) {
	if v == nil {
		return nil, true
	}
	minor := Minor(version)
	fits = minor == ""
	for _, p := range v.Platforms {
		if p.Name == platform {
			said = append(said, p.Version)
			fits = fits || p.Version == minor
		}
	}
	return said, fits || len(said) == 0
}

// String says it in a few words: "2026-12-31 (Maintenance support)".
func (s *Support) String() string {
	switch {
	case s == nil:
		return ""
	case s.State == Ended:
		return "ended " + s.Until
	case s.State == Coming:
		return s.Until + " (from " + s.From + ")"
	default:
		return s.Until + " (" + s.Phase + ")"
	}
}
