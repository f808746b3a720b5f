package explain

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// Conflict is a minimal set of declarations, requirements and facts that contradict each other. Minimal means
// that removing any item of the set gives a solution. Error formats the fields as text.
type Conflict struct {
	Namespace     string   `json:"namespace"`
	Subscriptions []string `json:"subscriptions"`      // subscriptions that take part ("namespace/name"), sorted; may be empty
	At            string   `json:"position,omitempty"` // position of the requested version ("--upgrade=a@1.2.3") or of the first subscription ("subscriptions/a.yaml:9:12")
	Chain         []Link   `json:"chain"`              // the contradiction, line by line, from the subscriptions down
	Changes       []Remedy `json:"changes"`            // changes that resolve the conflict, each on its own and proven by trying; least invasive first
	Tried         int      `json:"tried"`              // number of changes that were tried

	UnreadableCatalogs []catalog.ID `json:"-"` // unreadable catalogs that may contain the packages of its subscriptions
}

// Link is one line of a chain.
type Link struct {
	Depth int    `json:"depth"` // 0 for a declaration or a violated rule
	At    string `json:"position,omitempty"`
	Text  string `json:"text"` // "a.v1.0.0 requires the API b.example.com/v1 B"
}

// Remedy is a change that resolves a conflict.
type Remedy struct {
	At   string `json:"position,omitempty"`
	Text string `json:"text"`
}

// String returns the position and the text.
func (c Remedy) String() string { return positionPrefix(c.At) + c.Text }

// IsBetween reports whether the conflict has exactly this namespace and these subscriptions
// ("namespace/name", sorted).
func (c *Conflict) IsBetween(namespace string, subscriptions []string) bool {
	return c.Namespace == namespace && slices.Equal(c.Subscriptions, subscriptions)
}

// Reason returns the lines of the chain as one line.
func (c *Conflict) Reason() string {
	var texts []string
	for _, l := range c.Chain {
		texts = append(texts, l.Text)
	}
	return strings.Join(texts, "; ")
}

// Title returns a summary of the conflict in one line.
func (c *Conflict) Title() string {
	switch len(c.Subscriptions) {
	case 0:
		return "no solution in namespace " + c.Namespace
	case 1:
		return "no solution for subscription " + c.Subscriptions[0]
	}
	return "no solution for subscriptions " + strings.Join(c.Subscriptions, ", ") + " together"
}

// Error returns the conflict as text: the title with its position, the chain indented by tabs, and
// the suggested changes.
func (c *Conflict) Error() string {
	var b strings.Builder
	b.WriteString(sanitize.Line(positionPrefix(c.At) + c.Title()))
	for _, l := range c.Chain {
		b.WriteString("\n" + strings.Repeat("\t", l.Depth+1) + sanitize.Line(positionPrefix(l.At)+l.Text))
	}
	for _, line := range formatAdvice("resolves", c.Changes, c.Tried) {
		b.WriteString("\n\t" + line)
	}
	return b.String()
}

// formatAdvice formats suggested changes as lines. verb is the effect of a change, such as "resolves". If no
// change is suggested, it returns one line with the number of changes that were tried.
func formatAdvice(verb string, changes []Remedy, tried int) []string {
	switch len(changes) {
	case 0:
		return []string{"none of the alternatives tried " + verb + " it (" + diag.Count(tried, "change") + ")"}
	case 1:
		return []string{"this " + verb + " it:", "\t" + sanitize.Line(changes[0].String())}
	}
	lines := []string{"any of these " + verb + " it:"}
	for _, c := range changes {
		lines = append(lines, "\t"+sanitize.Line(c.String()))
	}
	return lines
}

func positionPrefix(pos string) string {
	if pos == "" {
		return ""
	}
	return pos + ": "
}

// Conflicts holds all conflicts of a resolution, sorted by namespace and subscriptions.
type Conflicts []*Conflict

// Error returns the texts of all conflicts, one after the other.
func (cs Conflicts) Error() string {
	texts := make([]string, len(cs))
	for i, c := range cs {
		texts[i] = c.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the conflicts as errors.
func (cs Conflicts) Unwrap() []error {
	errs := make([]error, len(cs))
	for i, c := range cs {
		errs[i] = c
	}
	return errs
}

// MapPositions replaces each position in c by the result of convert.
func (c *Conflict) MapPositions(convert func(at string) string) {
	c.At = convert(c.At)
	for i := range c.Chain {
		c.Chain[i].At = convert(c.Chain[i].At)
	}
	for i := range c.Changes {
		c.Changes[i].At = convert(c.Changes[i].At)
	}
}
