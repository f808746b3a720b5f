package diff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/lockfile"
)

// TestWords checks formatting helpers at the limits of their ranges.
func TestWords(t *testing.T) {
	minors := func(s string) string {
		m, ok := parseMinor(s)
		return fmt.Sprint(m, ok)
	}
	for _, c := range []struct{ what, got, want string }{
		{"nothing", quoteValue(nil), "nothing"},
		{"a text", quoteValue("x"), `"x"`},
		{"a number", quoteValue(int64(7)), "7"},
		{"no severity below off", Severity(-1).String(), "severity(-1)"},
		{"off", Off.String(), "off"},
		{"critical", Critical.String(), "critical"},
		{"no severity above critical", (Critical + 1).String(), "severity(6)"},
		{"the first minor", minors("v1.0"), fmt.Sprint(minor{1, 0}, true)},
		{"a patch and a plus", minors("1.34+") + minors("v1.34.2"), strings.Repeat(fmt.Sprint(minor{1, 34}, true), 2)},
		{"no major 0", minors("0.9"), fmt.Sprint(minor{0, 9}, false)},
		{"no scheme", fileURI("a:b/c"), "./a:b/c"},
		{"delimiters of a path", fileURI("a?b#c%d"), "a%3Fb%23c%25d"},
		{"other bytes", fileURI("é "), "%C3%A9%20"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}

// TestImageWords checks the messages for added, removed and equal tags.
func TestImageWords(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"q.io/a:1@sha256:1", "q.io/a:2@sha256:2", "q.io/a updated from 1 to 2"},
		{"q.io/a:1@sha256:1", "q.io/a@sha256:2", "new digest for q.io/a"},
		{"q.io/a@sha256:1", "q.io/a:2@sha256:2", "new digest for q.io/a"},
		{"q.io/a@sha256:1", "q.io/a@sha256:2", "new digest for q.io/a"},
	} {
		if got := imageChange(imageref.Split(c.before), imageref.Split(c.after)); got != c.want {
			t.Errorf("%s → %s: got %q, want %q", c.before, c.after, got, c.want)
		}
	}
	for s, want := range map[string]bool{
		"q.io/a:1": true, "q.io/a@sha256:" + strings.Repeat("0", 64): true, "q.io/a": false, "a:1": false, "local/a:1": false, "some words": false,
	} {
		if got := looksLikeImage(s); got != want {
			t.Errorf("%q is an image: %v", s, got)
		}
	}
}

// TestFieldsOfTheAPIServer parses the field paths in faults of the API server.
func TestFieldsOfTheAPIServer(t *testing.T) {
	content := map[string]any{"spec": map[string]any{
		"list":   []any{"first", map[string]any{"x": "deep"}},
		"labels": map[string]any{"app": "web", "a.b/c": "dotted"},
	}}
	for field, want := range map[string]string{
		"spec.list[0]": "first", "spec.list[1].x": "deep", "spec.list[2]": "", "spec.list[x]": "", "spec.labels[app]": "web",
		`spec.labels["a.b/c"]`: "dotted", ".spec.labels.app": "web", "spec.labels.app.x": "",
	} {
		if got := formatValue(valueAt(content, field)); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

// TestHoldLifted checks which changes of a hold are reported.
func TestHoldLifted(t *testing.T) {
	for _, c := range []struct {
		was, is string
		want    bool
	}{{"", "", false}, {"broken", "", true}, {"", "broken", false}, {"broken", "slow", false}} {
		of := func(hold string) State {
			return State{Pins: []lockfile.Pin{{Namespace: "ops", Package: "demo", Version: "1.0.0", Bundle: "demo.v1.0.0", Hold: hold}}}
		}
		found := slices.Contains(lines(compare(t, of(c.was), of(c.is))), "low upgrade.hold-lifted hold: broken → -")
		if found != c.want {
			t.Errorf("hold %q becomes %q: hold-lifted reported: %v", c.was, c.is, found)
		}
	}
}

// TestKindMoves checks that the finding about a removed CRD mentions an added CRD of the same kind
// in another group.
func TestKindMoves(t *testing.T) {
	other := strings.ReplaceAll(widget("{type: string}"), "demo.io", "new.io")
	for after, want := range map[string]bool{
		other: true,
		strings.NewReplacer("Widget", "Gadget", "widget", "gadget").Replace(other): false,
	} {
		r := compareManifests(t, widget("{type: string}"), after)
		if got := strings.Contains(fmt.Sprint(r.Findings), "now exists in group new.io"); got != want {
			t.Errorf("after\n%s\ngot %v", after, got)
		}
	}
}

// TestExpandedOperators checks which operators are expanded: all operators if there are few, otherwise only
// operators with a finding of at least high severity.
func TestExpandedOperators(t *testing.T) {
	for n, want := range map[int]int{3: 3, 4: 1} {
		r := &Report{}
		for i := range n {
			name := fmt.Sprintf("ops/o%d", i)
			r.Operators = append(r.Operators, OperatorReport{Name: name})
			r.Findings = append(r.Findings, Finding{Rule: "pods.replicas", Operator: name, Severity: []Severity{High, Medium, Low, Info}[i]})
		}
		page, err := HTML(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(regexp.MustCompile(`<details class="operator"[^>]* open>`).FindAll(page, -1)); got != want {
			t.Errorf("%d of %d operators are expanded, want %d", got, n, want)
		}
		if got := len(regexp.MustCompile(`<details class="group"[^>]* open>`).FindAll(page, -1)); got != 3 {
			t.Errorf("%d groups of findings are expanded, want 3: all but those of severity info", got)
		}
	}
}
