// Package gate decides whether an operator may be promoted from one environment to the next, according to
// observations of its health.
//
// Decisions depend only on the arguments: pins, observations, the rule and the time. The package does not
// access files, locks or clusters, and does not promote anything.
//
// Start from [Criteria].
package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Criteria is the rule for promotions from an environment.
type Criteria struct {
	Healthy  Share `json:"healthy"`        // required share of clusters in which the operator is healthy with the pinned bundle
	Soak     Span  `json:"soak"`           // required time of uninterrupted health
	Clusters int   `json:"clusters"`       // required number of healthy clusters
	Within   Span  `json:"observedWithin"` // maximum age of an observation

	Identified bool `json:"identified" doc:"observations must name environment, cluster and UID"`
	Signed     bool `json:"signed" doc:"observations must be signed"`
}

// DefaultCriteria returns the rule for an environment that configures none.
func DefaultCriteria() Criteria {
	return Criteria{Healthy: fullShare, Clusters: 1, Within: Span(24 * time.Hour)}
}

// Share is a percentage in thousandths of a percent: 99.5% is 99,500.
type Share int

// fullShare is 100%.
const fullShare Share = 100_000

// ParseShare parses a percentage such as 99% or 99.5%, above 0% and at most 100%, with up to three
// decimals.
func ParseShare(s string) (Share, error) {
	number, percent := strings.CutSuffix(s, "%")
	before, after, dotted := strings.Cut(number, ".")
	digits := before + (after + "000")[:3]
	n, err := strconv.ParseUint(digits, 10, 20)
	if !percent || err != nil || before == "" || dotted && after == "" || len(after) > 3 || n == 0 || n > uint64(fullShare) {
		return 0, fmt.Errorf("%q is not a percentage such as 99%% or 99.5%%, above 0%% and at most 100%%", s)
	}
	return Share(n), nil
}

// UnmarshalText parses a percentage. See ParseShare.
func (s *Share) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShare(string(text))
	return err
}

func (s Share) String() string {
	text := fmt.Sprintf("%d.%03d", s/1000, s%1000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// MarshalText returns the percentage as text.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Span is a duration with a short text form, such as 24h.
type Span time.Duration

// ParseSpan parses a non-negative duration such as 24h, 90m or 3d.
func ParseSpan(s string) (Span, error) {
	if number, days := strings.CutSuffix(s, "d"); days {
		n, err := strconv.ParseUint(number, 10, 16)
		if err == nil {
			return Span(time.Duration(n) * 24 * time.Hour), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time such as 24h or 90m", s)
	}
	return Span(d), nil
}

// UnmarshalText parses a duration. See ParseSpan.
func (s *Span) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSpan(string(text))
	return err
}

// String returns the duration without units that are zero: 24h instead of 24h0m0s.
func (s Span) String() string {
	text := time.Duration(s).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the duration as text.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
