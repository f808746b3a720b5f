package window

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for systems without time zones, such as Windows and images from scratch

	"github.com/robfig/cron/v3"
)

// Schedule is a cron expression with its time zone.
type Schedule struct {
	spec cron.Schedule // computes with the dates and clock times of zone, represented in UTC
	zone *time.Location
}

// ParseSchedule parses a cron expression with five fields.
func ParseSchedule(expression string, zone *time.Location) (*Schedule, error) {
	if strings.Contains(expression, "=") {
		return nil, errors.New("a time zone is not part of the expression: set timeZone")
	}
	spec, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("TZ=UTC " + expression)
	if err != nil {
		return nil, fmt.Errorf("must be a cron expression such as \"0 22 * * 1-4\": %w", err)
	}
	s := &Schedule{spec, zone}
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("it never opens: no month has this day")
	}
	return s, nil
}

// ParseZone returns a time zone of the IANA database.
func ParseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %q: must be a name of the IANA database, such as Europe/Zurich", name)
	}
	return zone, nil
}

// next returns the first time of the schedule after at, or the zero time if there is none.
func (s *Schedule) next(at time.Time) time.Time {
	for shown := s.clock(at); ; {
		if shown = s.spec.Next(shown); shown.IsZero() {
			return shown
		}
		if next := s.instant(shown); next.After(at) {
			return next
		}
	}
}

// clock returns the local date and time in the time zone of the schedule, stored as if they were UTC.
func (s *Schedule) clock(at time.Time) time.Time {
	_, offset := at.In(s.zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns the first instant at which clock returns the local time shown. If the clock skips this local
// time, as at the start of daylight saving time, instant returns the time of the skip.
func (s *Schedule) instant(shown time.Time) time.Time {
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, s.zone)
	start, end := at.ZoneBounds()
	switch got := s.clock(at); {
	case got.After(shown):
		return start
	case got.Before(shown):
		return end
	case start.IsZero():
		return at
	}
	_, before := start.Add(-time.Second).Zone()
	if first := shown.Add(-time.Duration(before) * time.Second).In(s.zone); first.Before(start) {
		return first
	}
	return at
}
