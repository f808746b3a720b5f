package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// field is a field of a cron expression. Without values, it is "*".
type field []int

func (f field) String() string {
	if len(f) == 0 {
		return "*"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(f)), " ", ","), "[]")
}

func (f field) has(n int) bool { return len(f) == 0 || slices.Contains(f, n) }

// expression is a cron expression.
type expression struct{ minute, hour, day, month, weekday field }

func (e expression) String() string {
	return fmt.Sprintf("%s %s %s %s %s", e.minute, e.hour, e.day, e.month, e.weekday)
}

// matches reports whether the expression matches the time that a clock shows. If both the day of the month and
// the weekday are restricted, one match is enough.
func (e expression) matches(shown time.Time) bool {
	day, weekday := e.day.has(shown.Day()), e.weekday.has(int(shown.Weekday()))
	both := day && weekday
	if len(e.day) > 0 && len(e.weekday) > 0 {
		both = day || weekday
	}
	return both && e.minute.has(shown.Minute()) && e.hour.has(shown.Hour()) && e.month.has(int(shown.Month()))
}

// drawField draws some numbers, or "*".
func drawField(t *rapid.T, low, high int, name string) field {
	f := field(rapid.SliceOfNDistinct(rapid.IntRange(low, high), 0, 3, rapid.ID[int]).Draw(t, name))
	slices.Sort(f)
	return f
}

// openings reports, for each minute since from, whether a window opens. It reads the local time every
// minute. A window opens when the clock first shows, or skips, a time that e matches.
func openings(e expression, zone *time.Location, from time.Time, minutes int) []bool {
	shown := func(at time.Time) time.Time {
		at = at.In(zone)
		return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	}
	out := make([]bool, minutes)
	last := shown(from.Add(-time.Minute)) // the latest time that the clock has shown before
	for i := range out {
		now := shown(from.Add(time.Duration(i) * time.Minute))
		for ; last.Before(now); last = last.Add(time.Minute) {
			out[i] = out[i] || e.matches(last.Add(time.Minute))
		}
	}
	return out
}

// TestDecide compares decisions with a scan of all minutes of some days. No change is allowed outside of its
// windows, and From must be the earliest allowed time. The days have changes of the clock in both directions,
// also by half an hour, a skipped day, or a leap day.
func TestDecide(t *testing.T) {
	days := []struct{ zone, day string }{
		{"Europe/Zurich", "2026-03-28"},
		{"Europe/Zurich", "2026-10-24"},
		{"America/New_York", "2026-03-07"},
		{"America/New_York", "2026-10-31"},
		{"Australia/Lord_Howe", "2026-04-04"},
		{"Australia/Lord_Howe", "2026-10-03"},
		{"Pacific/Apia", "2011-12-29"},
		{"UTC", "2028-02-28"},
		{"Asia/Kolkata", "2027-02-27"},
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom(days).Draw(t, "days")
		first, err := time.Parse(time.DateOnly, at.day)
		if err != nil {
			t.Fatal(err)
		}
		const lead, scanned = 24 * 60, 4 * 24 * 60
		severities := []string{"low", "high"}
		var windows []Window
		var open [][]bool
		for i := range rapid.IntRange(1, 4).Draw(t, "windows") {
			zone, err := ParseZone(rapid.SampledFrom([]string{at.zone, "UTC"}).Draw(t, "zone"))
			if err != nil {
				t.Fatal(err)
			}
			e := expression{drawField(t, 0, 59, "minute"), drawField(t, 0, 4, "hour"), nil, nil, nil}
			if rapid.Bool().Draw(t, "days") {
				e.day, e.weekday = field{first.Day(), first.AddDate(0, 0, 1).Day()}, drawField(t, 0, 6, "weekday")
			}
			schedule, err := ParseSchedule(e.String(), zone)
			if err != nil {
				t.Fatal(err)
			}
			w := Window{Deny: rapid.Bool().Draw(t, "deny"), Schedule: schedule, Duration: time.Duration(rapid.IntRange(1, lead).Draw(t, "duration")) * time.Minute}
			if rapid.Bool().Draw(t, "selects") {
				w.Severities = []string{rapid.SampledFrom(severities).Draw(t, "severity")}
			}
			w.Name = fmt.Sprintf("%d %s %s %s", i, e, w.Duration, zone)
			windows = append(windows, w)
			from, isOpen := openings(e, zone, first.Add(-lead*time.Minute), lead+scanned), make([]bool, scanned)
			left := 0
			for m, opens := range from {
				if opens {
					left = int(w.Duration / time.Minute)
				}
				if m >= lead {
					isOpen[m-lead] = left > 0
				}
				left--
			}
			open = append(open, isOpen)
		}
		may := func(minute int, severity string) bool {
			allowed, needed := false, false
			for i, w := range windows {
				switch {
				case !w.selects(Subject{Severity: severity}):
				case w.Deny && open[i][minute]:
					return false
				case !w.Deny:
					needed, allowed = true, allowed || open[i][minute]
				}
			}
			return allowed || !needed
		}
		subjects := []Subject{{Severity: "low"}}
		if rapid.Bool().Draw(t, "two") {
			subjects = append(subjects, Subject{Severity: "high"})
		}
		next := -1 // the first minute from the one looked at that permits the change
		for minute := scanned - 1; minute >= 0; minute-- {
			ok := true
			for _, s := range subjects {
				ok = ok && may(minute, s.Severity)
			}
			if ok {
				next = minute
			}
			if minute%29 > 0 && (next != minute || minute%5 > 0) {
				continue
			}
			now := first.Add(time.Duration(minute) * time.Minute)
			got := decideUntil(windows, now, first.Add(scanned*time.Minute), subjects)
			switch want := first.Add(time.Duration(next) * time.Minute); {
			case got.May != ok, got.May == (got.By != nil):
				t.Fatalf("%s: may %v, by %+v, want %v", now, got.May, got.By, ok)
			case next < 0 && !got.From.IsZero():
				t.Fatalf("%s: from %s, but no minute of these days permits it", now, got.From)
			case next >= 0 && !got.From.Equal(want):
				t.Fatalf("%s: from %s, want %s", now, got.From, want)
			}
		}
	})
}

// TestDecideTable decides about windows whose next opening is far away, about freezes, and about windows for
// some subjects.
func TestDecideTable(t *testing.T) {
	zone, err := ParseZone("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	open := func(deny bool, expression string, duration time.Duration) Window {
		s, err := ParseSchedule(expression, zone)
		if err != nil {
			t.Fatal(err)
		}
		return Window{Deny: deny, Schedule: s, Duration: duration, Name: expression}
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	freeze := Window{Deny: true, Until: time.Date(2027, 1, 4, 7, 0, 0, 0, time.UTC), Name: "freeze"}
	nightly := open(false, "0 22 * * *", 2*time.Hour)
	of := func(w Window, change func(*Window)) Window { change(&w); return w }
	for name, c := range map[string]struct {
		windows []Window
		subject Subject
		want    string
	}{
		"no window":                   {nil, Subject{}, "now"},
		"allow":                       {[]Window{nightly}, Subject{}, "2026-11-30 22:00 Europe/Zurich"},
		"freeze":                      {[]Window{freeze}, Subject{}, "2027-01-04 07:00 UTC"},
		"freeze, then allow":          {[]Window{freeze, nightly}, Subject{}, "2027-01-04 22:00 Europe/Zurich"},
		"leap day":                    {[]Window{open(false, "0 0 29 2 *", time.Hour)}, Subject{}, "2028-02-29 00:00 Europe/Zurich"},
		"deny for all of the allowed": {[]Window{nightly, open(true, "0 21 * * *", 3*time.Hour)}, Subject{}, "never"},
		"deny that never ends":        {[]Window{open(true, "0 0 * * *", 25*time.Hour)}, Subject{}, "never"},
		"deny of 24 hours a day":      {[]Window{open(true, "0 0 * * *", 24*time.Hour)}, Subject{}, "2027-10-31 23:00 Europe/Zurich"}, // a day has 25
		"deny of each minute":         {[]Window{open(true, "* * * 1-11 *", time.Minute)}, Subject{}, "2026-12-01 00:00 Europe/Zurich"},
		"other operator":              {[]Window{of(freeze, func(w *Window) { w.Operators = []string{"ops/*"} })}, Subject{Operator: "db/etcd"}, "now"},
		"pattern of operators":        {[]Window{of(freeze, func(w *Window) { w.Operators = []string{"db/*"} })}, Subject{Operator: "db/etcd"}, "2027-01-04 07:00 UTC"},
		"other environment":           {[]Window{of(freeze, func(w *Window) { w.Environments = []string{"prod"} })}, Subject{Environment: "dev"}, "now"},
		"other severity":              {[]Window{of(freeze, func(w *Window) { w.Severities = []string{"high"} })}, Subject{Severity: "low"}, "now"},
		"unknown severity":            {[]Window{of(freeze, func(w *Window) { w.Severities = []string{"high"} })}, Subject{}, "2027-01-04 07:00 UTC"},
	} {
		t.Run(name, func(t *testing.T) {
			d, got := Decide(c.windows, now, c.subject), "now"
			switch {
			case d.From.IsZero():
				got = "never"
			case !d.May:
				got = d.Text()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestParse checks that invalid expressions and time zones are rejected.
func TestParse(t *testing.T) {
	for expression, want := range map[string]string{
		"0 22 * *":                     "must be a cron expression such as \"0 22 * * 1-4\": expected exactly 5 fields, found 4: [0 22 * *]",
		"@daily":                       "must be a cron expression such as \"0 22 * * 1-4\": parser does not accept descriptors: @daily",
		"60 * * * *":                   "must be a cron expression such as \"0 22 * * 1-4\": end of range (60) above maximum (59): 60",
		"0 0 30 2 *":                   "it never opens: no month has this day",
		"CRON_TZ=Asia/Tokyo 0 0 * * *": "a time zone is not part of the expression: set timeZone",
	} {
		if _, err := ParseSchedule(expression, time.UTC); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for _, name := range []string{"", "Local", "Europe/Zuerich", "../etc/passwd"} {
		if _, err := ParseZone(name); err == nil {
			t.Errorf("%q: accepted", name)
		}
	}
}
