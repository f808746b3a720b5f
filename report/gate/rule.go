// Package gate says whether what was seen of an operator in one environment is
// enough for the next one to take it.
//
// It is pure: pins, observations, the rule and the time come in as values, and
// the same input gives the same verdict. It reads no file, no lock and no
// cluster, and moves nothing.
//
// Start from [Rule].
package gate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rule is what must have been seen before an operator is taken over.
type Rule struct {
	Healthy  Share `json:"healthy"`        // of the clusters that get the operator: at the pin, and healthy
	Soak     Span  `json:"soak"`           // for how long without a break
	Clusters int   `json:"clusters"`       // at least so many
	Within   Span  `json:"observedWithin"` // how long ago they may have been looked at
}

// Default returns the rule of one who says nothing else.
func Default() Rule {
	return Rule{Healthy: whole, Clusters: 1, Within: Span(24 * time.Hour)}
}

// Share is a part of a whole, in thousandths of a percent.
type Share int

// whole is 100%.
const whole Share = 100_000

// ParseShare reads a share such as 99% or 99.5%: more than nothing, and not more
// than everything, to three decimals.
func ParseShare(s string) (Share, error) {
	number, percent := strings.CutSuffix(s, "%")
	before, after, dotted := strings.Cut(number, ".")
	digits := before + (after + "000")[:3]
	n, err := strconv.ParseUint(digits, 10, 20)
	if !percent || err != nil || before == "" || dotted && after == "" || len(after) > 3 || n == 0 || n > uint64(whole) {
		return 0, fmt.Errorf("%q is not a share such as 99%% or 99.5%%, above 0%% and at most 100%%", s)
	}
	return Share(n), nil
}

// UnmarshalText reads what ParseShare reads.
func (s *Share) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShare(string(text))
	return err
}

func (s Share) String() string {
	text := fmt.Sprintf("%d.%03d", s/1000, s%1000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// MarshalText returns the text that ParseShare reads.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Span is a length of time.
type Span time.Duration

// ParseSpan reads a length of time such as 24h or 90m, which is not negative.
func ParseSpan(s string) (Span, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time such as 24h or 90m", s)
	}
	return Span(d), nil
}

// UnmarshalText reads what ParseSpan reads.
func (s *Span) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSpan(string(text))
	return err
}

// String returns the time without what is zero at its end: 24h and not 24h0m0s.
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

// MarshalText returns the text that ParseSpan reads.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
