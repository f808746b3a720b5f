package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/resolve/internal/solve"
)

// Conflict is a set of declarations, requirements and facts that cannot hold
// together. It is true (they alone have no solution) and minimal (any one of
// them left out, the rest has one). It is data; Error prints it.
type Conflict struct {
	Namespace     string   `json:"namespace"`
	Subscriptions []string `json:"subscriptions"` // "ns/name" of those that take part, sorted; empty where none does
	At            string   `json:"at,omitempty"`  // where the first of them stands: "subscriptions/a.yaml:9:12"; rather, what asks for a version: "--upgrade=a@1.2.3"
	Chain         []Link   `json:"chain"`         // who asks for what, root first
	Changes       []Change `json:"changes"`       // what resolves it, each by itself, tried; the least invasive first
	Tried         int      `json:"tried"`         // how many changes were

	Waits []catalog.ID `json:"-"` // the catalogs that could not be read and that its subscriptions need
}

// Link is one line of a chain.
type Link struct {
	Depth int    `json:"depth"` // 0: a declaration, or a rule that the others break
	At    string `json:"at,omitempty"`
	Text  string `json:"text"` // "a.v1.0.0 requires the API b.example.com/v1 B"
}

// Change is one thing to do that resolves a conflict.
type Change struct {
	At   string `json:"at,omitempty"`
	Text string `json:"text"`
}

// Title says in one line what could not be done.
func (c *Conflict) Title() string {
	switch len(c.Subscriptions) {
	case 0:
		return "no solution in namespace " + c.Namespace
	case 1:
		return "no solution for subscription " + c.Subscriptions[0]
	}
	return "no solution for subscriptions " + strings.Join(c.Subscriptions, ", ") + " together"
}

// Error prints the conflict: a title with its position, the chain indented by
// tabs, and what could be changed.
func (c *Conflict) Error() string {
	var b strings.Builder
	b.WriteString(inert.Line(at(c.At) + c.Title()))
	for _, l := range c.Chain {
		b.WriteString("\n" + strings.Repeat("\t", l.Depth+1) + inert.Line(at(l.At)+l.Text))
	}
	for _, line := range advice("resolves", c.Changes, c.Tried) {
		b.WriteString("\n\t" + line)
	}
	return b.String()
}

// advice puts changes into lines, and says where none of those that were tried
// does what is wanted.
func advice(does string, changes []Change, tried int) []string {
	switch len(changes) {
	case 0:
		return []string{"nothing that was tried " + does + " it (" + diag.Count(tried, "change") + ")"}
	case 1:
		return []string{"this " + does + " it:", "\t" + inert.Line(at(changes[0].At)+changes[0].Text)}
	}
	lines := []string{"any one of these " + does + " it:"}
	for _, c := range changes {
		lines = append(lines, "\t"+inert.Line(at(c.At)+c.Text))
	}
	return lines
}

func at(pos string) string {
	if pos == "" {
		return ""
	}
	return pos + ": "
}

// Conflicts is everything that could not be answered, sorted by namespace and
// subscriptions.
type Conflicts []*Conflict

// Error prints one conflict after the other.
func (cs Conflicts) Error() string {
	texts := make([]string, len(cs))
	for i, c := range cs {
		texts[i] = c.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns each conflict.
func (cs Conflicts) Unwrap() []error {
	errs := make([]error, len(cs))
	for i, c := range cs {
		errs[i] = c
	}
	return errs
}

// Point replaces every place that c names by what to makes of it.
func (c *Conflict) Point(to func(at string) string) {
	c.At = to(c.At)
	for i := range c.Chain {
		c.Chain[i].At = to(c.Chain[i].At)
	}
	for i := range c.Changes {
		c.Changes[i].At = to(c.Changes[i].At)
	}
}

// unique sorts conflicts and drops what a later round found again.
func unique(cs []*Conflict) []*Conflict {
	slices.SortStableFunc(cs, func(a, b *Conflict) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), slices.Compare(a.Subscriptions, b.Subscriptions))
	})
	return slices.CompactFunc(cs, func(a, b *Conflict) bool { return a.Error() == b.Error() })
}

// teller returns what tells of a core of p. Rule 2.
func (b *builder) teller(p solve.Problem, core []int) *teller {
	t := &teller{b: b, told: map[int]bool{}, in: map[int]bool{}}
	for _, tag := range core {
		of := b.of[tag]
		if i := slices.IndexFunc(p.Roots, func(c solve.Choice) bool { return c.Tag == tag }); i >= 0 {
			of = p.Roots[i].Of
		}
		t.causes = append(t.causes, tagged{b.causes[tag], tag, of})
	}
	slices.SortStableFunc(t.causes, func(x, y tagged) int { return cmp.Compare(x.order(), y.order()) })
	for _, x := range t.causes {
		for _, id := range x.of {
			t.in[id] = t.in[id] || x.order() != whatForbids
		}
	}
	return t
}

// conflict puts the core into words.
func (t *teller) conflict() *Conflict {
	c := &Conflict{Subscriptions: []string{}, Changes: []Change{}}
	argued := ""
	for _, x := range t.causes {
		c.Namespace = cmp.Or(c.Namespace, x.about().ns)
		if by, ok := x.cause.(asking); ok {
			c.Subscriptions = append(c.Subscriptions, by.want.key())
			c.At = cmp.Or(c.At, by.where())
			if n := t.b.w.bound(by.want); n != nil && argued == "" {
				argued = n.At.String()
			}
			c.Waits = append(c.Waits, t.b.w.waits(by.want)...)
		}
	}
	c.At = cmp.Or(argued, c.At)
	slices.Sort(c.Subscriptions)
	c.Subscriptions = slices.Compact(c.Subscriptions)
	c.Chain = t.chain()
	return c
}
