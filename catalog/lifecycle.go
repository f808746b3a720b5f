package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// LifecycleSchema is the schema of lifecycle documents, which declare the support periods of an
// operator's versions.
const LifecycleSchema = "io.openshift.operators.lifecycles.v1alpha1"

// OpenShift is the name of the OpenShift platform in lifecycle documents. quayside compares the supported
// versions of this platform with the OpenShift version that the workspace declares.
const OpenShift = "openshift"

// SupportedVersion holds the support periods of one MAJOR.MINOR version of an operator, including
// all its patch releases.
type SupportedVersion struct {
	Name      string              `json:"version" form:"required nonempty" doc:"MAJOR.MINOR of the operator's version."`                                         // "4.12"
	Phases    []SupportPhase      `json:"phases" form:"required" doc:"The phases of support. Each phase begins on the day after the end of the previous phase."` // at least one
	Platforms []SupportedPlatform `json:"platforms,omitempty" doc:"Declared platform versions. Absent if none are declared."`
}

// SupportPhase is a period of support. Start and End are the first and the last day, both
// inclusive.
type SupportPhase struct {
	Name  string `json:"name" form:"required nonempty" doc:"Vendor's name of the phase."`             // "Maintenance support"
	Start string `json:"startDate" form:"required nonempty" doc:"The first day, such as 2026-01-31."` // "2025-05-26"
	End   string `json:"endDate" form:"required nonempty" doc:"The last day, such as 2026-12-31."`
}

// SupportedPlatform is a platform version that an operator version supports.
type SupportedPlatform struct {
	Name    string `json:"name" form:"required nonempty" doc:"The platform, such as openshift."`
	Version string `json:"version" form:"required nonempty" doc:"MAJOR.MINOR of the platform's version."` // "4.17"
}

// SupportState is the state of support on a given day.
type SupportState string

// The support states: before the first phase, during the phases, and after the last phase.
const (
	Upcoming  SupportState = "upcoming"
	Supported SupportState = "supported"
	Ended     SupportState = "endOfLife"
)

// Support is the support of an operator version on a given day.
type Support struct {
	State SupportState `json:"state" form:"enum=upcoming|supported|endOfLife" doc:"Whether the version is supported on the day: upcoming before the first phase, endOfLife after the last phase."`
	Phase string       `json:"phase,omitempty" doc:"The phase that the day is in."`
	From  string       `json:"from" doc:"The first day of support."`
	Until string       `json:"until" doc:"The last day of support."`
}

// Minor returns MAJOR.MINOR of a version, such as "1.2" for "1.2.3-rc.1", or "" if the version is
// invalid.
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

// CheckMinor returns an error if name is not MAJOR.MINOR.
func CheckMinor(name string) error {
	major, minor, ok := strings.Cut(name, ".")
	for _, part := range []string{major, minor} {
		n, err := strconv.ParseUint(part, 10, 64)
		ok = ok && err == nil && strconv.FormatUint(n, 10) == part
	}
	if !ok {
		return fmt.Errorf("version %q: must be MAJOR.MINOR, such as 4.12", name)
	}
	return nil
}

// CheckDay returns an error if day is not a date such as "2027-01-31".
func CheckDay(day string) error {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fmt.Errorf("day %q: must be a date such as 2027-01-31", day)
	}
	return nil
}

// FindSupport returns the element with the MAJOR.MINOR of a version, or nil if there is none.
func FindSupport(all []SupportedVersion, version string) *SupportedVersion {
	name := Minor(version)
	for i := range all {
		if all[i].Name == name && name != "" {
			return &all[i]
		}
	}
	return nil
}

// Check returns an error if Start or End is not a valid date, or if End is not later than Start.
func (p SupportPhase) Check() error {
	for _, day := range []string{p.Start, p.End} {
		if err := CheckDay(day); err != nil {
			return err
		}
	}
	if p.End <= p.Start {
		return fmt.Errorf("phase %q begins on %s and ends on %s: the end must be later", p.Name, p.Start, p.End)
	}
	return nil
}

// CheckFollows returns an error if p does not begin on the day after the end of last, the previous phase. Both
// phases must be valid.
func (p SupportPhase) CheckFollows(last SupportPhase) error {
	if want := AddDays(last.End, 1); p.Start != want {
		return fmt.Errorf("phase %q begins on %s: expected %s, the day after phase %q ends", p.Name, p.Start, want, last.Name)
	}
	return nil
}

// AddDays returns the date that is the given number of days after day, or "" if day is invalid.
func AddDays(day string, days int) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return t.AddDate(0, 0, days).Format(time.DateOnly)
}

// SupportOn returns the support of v on a day, or nil if v is nil or the day is invalid.
func (v *SupportedVersion) SupportOn(day string) *Support {
	if v == nil || len(v.Phases) == 0 || CheckDay(day) != nil {
		return nil
	}
	s := &Support{State: Ended, From: v.Phases[0].Start, Until: v.LastDay()}
	if day < s.From {
		s.State = Upcoming
	}
	for _, p := range v.Phases {
		if p.Start <= day && day <= p.End {
			s.State, s.Phase = Supported, p.Name
		}
	}
	return s
}

// LastDay returns the last day of support, or "" if v is nil.
func (v *SupportedVersion) LastDay() string {
	if v == nil || len(v.Phases) == 0 {
		return ""
	}
	return v.Phases[len(v.Phases)-1].End
}

// EndsWithin reports whether v is supported on day, and is no longer supported on the date that is
// the given number of days later.
func (v *SupportedVersion) EndsWithin(day string, days int) bool {
	s := v.SupportOn(day)
	return s != nil && s.State == Supported && s.Until < AddDays(day, days)
}

// SupportsPlatform returns the versions of a platform that v supports, in file order, and whether version is
// one of them. supported is also true if v lists no version of the platform, or if version is invalid.
func (v *SupportedVersion) SupportsPlatform(platform, version string) (declared []string, supported bool) {
	if v == nil {
		return nil, true
	}
	minor := Minor(version)
	supported = minor == ""
	for _, p := range v.Platforms {
		if p.Name == platform {
			declared = append(declared, p.Version)
			supported = supported || p.Version == minor
		}
	}
	return declared, supported || len(declared) == 0
}

// String returns the last day of support and the phase, such as "2026-12-31 (Maintenance support)".
func (s *Support) String() string {
	switch {
	case s == nil:
		return ""
	case s.State == Ended:
		return "ended " + s.Until
	case s.State == Upcoming:
		return s.Until + " (from " + s.From + ")"
	default:
		return s.Until + " (" + s.Phase + ")"
	}
}
