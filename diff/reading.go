package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/inert"
)

// Reading is what there is to read of an operator that comes, or moves to another
// version. All of it is what bundles say of themselves: nobody was asked whether there
// is anything at an address.
type Reading struct {
	Operator string        `json:"operator" form:"required" doc:"namespace/package"`
	Links    []ReadingLink `json:"links,omitempty" doc:"new, or at another address than before"`
	Texts    []ReadingText `json:"texts,omitempty" doc:"that changed"`
}

// ReadingLink is a page.
type ReadingLink struct {
	What   string `json:"what" form:"required enum=changes|repository|support|link" doc:"changes: where a forge may compare both versions, if their tags are called so"`
	Text   string `json:"text,omitempty" doc:"what the bundle calls it; the tags that are compared"`
	URL    string `json:"url" form:"required" doc:"over http or https"`
	Before string `json:"before,omitempty" doc:"the address that it had"`
}

// ReadingText is how a text changed.
type ReadingText struct {
	What  string   `json:"what" form:"required" doc:"description, or the name of an annotation"`
	Lines []string `json:"lines" form:"required" doc:"lines and sentences that came, which begin with +, and that went, which begin with -"`
	Left  int      `json:"left,omitempty" doc:"how many more there are"`
}

// Bounds of what is read of one bundle, and shown of it.
const (
	maxProse     = 64 << 10 // bytes of a text
	maxSentences = 60       // of the changes of one text
	maxSentence  = 300      // bytes
	maxLinks     = 20
)

// Readings returns what there is to read, by operator: of those of which a bundle is
// known after, and is not the one before. Both are by namespace/package; an
// operator that is not among those before is new.
func Readings(before, after map[string]*bundle.CSV) []Reading {
	var out []Reading
	for _, operator := range names(after) {
		was, is := before[operator], after[operator]
		if was == nil {
			was = &bundle.CSV{}
		}
		r := Reading{Operator: operator, Links: newLinks(was, is)}
		if was.Name != "" {
			r.Texts = changedTexts(was, is)
		}
		if len(r.Links)+len(r.Texts) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// newLinks returns the links of a bundle that the one before does not have, and
// where both versions may be compared.
func newLinks(was, is *bundle.CSV) []ReadingLink {
	var out []ReadingLink
	if page, a, b := Comparison(is, was.Version); page != "" {
		out = append(out, ReadingLink{What: "changes", Text: a + "..." + b, URL: page})
	}
	for _, what := range []string{"repository", "support"} {
		now, old := Address(is.Annotations[what]), Address(was.Annotations[what])
		if now != "" && now != old {
			out = append(out, ReadingLink{What: what, URL: now, Before: old})
		}
	}
	named := map[string]string{}
	for _, l := range was.Links {
		named[l.Name] = Address(l.URL)
	}
	for _, l := range is.Links {
		now, old := Address(l.URL), named[l.Name]
		if now != "" && now != old && len(out) < maxLinks {
			out = append(out, ReadingLink{What: "link", Text: inert.Cut(l.Name, 200), URL: now, Before: old})
		}
	}
	return out
}

// changedTexts returns how the description of a bundle changed, and those annotations
// that are for whoever installs it.
func changedTexts(was, is *bundle.CSV) []ReadingText {
	var out []ReadingText
	add := func(what, a, b string) {
		if text := changedText(a, b); len(text.Lines) > 0 {
			text.What = what
			out = append(out, text)
		}
	}
	add("description", was.Description, is.Description)
	keys := maps.Clone(was.Annotations)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, is.Annotations)
	for _, name := range names(keys) {
		if tells(name) && Address(is.Annotations[name]) == "" {
			add(name, was.Annotations[name], is.Annotations[name])
		}
	}
	return out
}

// tells reports whether an annotation is for whoever installs an operator, and not
// for a console or a build. What OLM's documentation and the guides of OpenShift ask
// authors for has these names.
func tells(annotation string) bool {
	return slices.Contains([]string{"capabilities", "description", "support"}, annotation) ||
		slices.ContainsFunc([]string{"operatorframework.io/", "operators.openshift.io/", "features.operators.openshift.io/"}, func(prefix string) bool {
			return strings.HasPrefix(annotation, prefix)
		})
}

// changedText returns which lines and sentences of a text came and went.
func changedText(was, is string) ReadingText {
	a, b := sentences(was), sentences(is)
	var out ReadingText
	unified, err := udiff.ToUnifiedDiff("", "", a, udiff.Lines(a, b), 0)
	if err != nil {
		panic(fmt.Sprintf("diff: the changes of a text do not fit it: %v", err))
	}
	for _, hunk := range unified.Hunks {
		for _, l := range hunk.Lines {
			text := strings.TrimSpace(inert.Line(l.Content))
			if l.Kind == udiff.Equal || text == "" {
				continue
			}
			if len(out.Lines) == maxSentences {
				out.Left++
				continue
			}
			sign := "+ "
			if l.Kind == udiff.Delete {
				sign = "- "
			}
			out.Lines = append(out.Lines, sign+inert.Cut(text, maxSentence))
		}
	}
	return out
}

// sentences returns a text with each sentence in a line of its own: who writes a
// paragraph as one line changes a word of it. Every line has an end, and no blanks
// before it.
func sentences(text string) string {
	var b strings.Builder
	for line := range strings.Lines(inert.Cut(text, maxProse)) {
		b.WriteString(strings.ReplaceAll(strings.TrimRight(line, " \t\r\n"), ". ", ".\n") + "\n")
	}
	return b.String()
}

// Title says in words what the link is.
func (l ReadingLink) Title() string {
	switch l.What {
	case "changes":
		return "changes, if the tags are called so, " + l.Text
	case "link":
		return inert.Line(l.Text)
	}
	return l.What
}

// Title says how much of the text changed.
func (t ReadingText) Title() string {
	came, went := 0, 0
	for _, line := range t.Lines {
		if strings.HasPrefix(line, "+") {
			came++
		} else {
			went++
		}
	}
	if t.Left > 0 {
		return fmt.Sprintf("%s, changed in more than %d places", t.What, maxSentences)
	}
	return fmt.Sprintf("%s: %d in, %d out", t.What, came, went)
}
