package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/sanitize"
)

// Reading lists release notes for an operator that is installed or upgraded: links, and changed
// texts of its bundle. URLs are not checked.
type Reading struct {
	Operator string        `json:"operator" form:"required" doc:"namespace/package"`
	Links    []ReadingLink `json:"links,omitempty" doc:"new links, and links with another URL"`
	Texts    []ReadingText `json:"texts,omitempty" doc:"changed texts"`
}

// ReadingLink is a link to a page.
type ReadingLink struct {
	What   string `json:"kind" form:"required enum=changes|repository|support|link" doc:"changes: comparison of both versions on the forge, with guessed tags"`
	Text   string `json:"text,omitempty" doc:"name in the bundle, or compared tags"`
	URL    string `json:"url" form:"required" doc:"over http or https"`
	Before string `json:"before,omitempty" doc:"previous URL"`
}

// ReadingText is the change of a text.
type ReadingText struct {
	Name    string   `json:"name" form:"required" doc:"description, or the name of an annotation"`
	Lines   []string `json:"lines" form:"required" doc:"added (+) and removed (-) lines and sentences"`
	Omitted int      `json:"omitted,omitempty" doc:"number of omitted lines"`
}

// Limits for the reading list of one operator.
const (
	maxProse     = 64 << 10 // bytes of a text that is compared
	maxSentences = 60       // changed sentences of one text
	maxSentence  = 300      // bytes of a sentence
	maxLinks     = 20
)

// Readings returns the reading lists, sorted by operator. Keys are operators as
// "namespace/package". after contains the bundles of installed and upgraded operators. before
// contains the previous bundles of upgraded operators.
func Readings(before, after map[string]*bundle.CSV) []Reading {
	var out []Reading
	for _, operator := range sortedKeys(after) {
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

// newLinks returns the new and changed links of a bundle, and a link to a page of the forge that compares
// both versions.
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
			out = append(out, ReadingLink{What: "link", Text: sanitize.Truncate(l.Name, 200), URL: now, Before: old})
		}
	}
	return out
}

// changedTexts returns the changes in the description and in the annotations for users.
func changedTexts(was, is *bundle.CSV) []ReadingText {
	var out []ReadingText
	add := func(what, a, b string) {
		if text := changedText(a, b); len(text.Lines) > 0 {
			text.Name = what
			out = append(out, text)
		}
	}
	add("description", was.Description, is.Description)
	keys := maps.Clone(was.Annotations)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, is.Annotations)
	for _, name := range sortedKeys(keys) {
		if isUserAnnotation(name) && Address(is.Annotations[name]) == "" {
			add(name, was.Annotations[name], is.Annotations[name])
		}
	}
	return out
}

// isUserAnnotation reports whether an annotation contains text for users, as opposed to metadata
// for consoles or builds. The names are from the authoring guidelines of OLM and OpenShift.
func isUserAnnotation(annotation string) bool {
	return slices.Contains([]string{"capabilities", "description", "support"}, annotation) ||
		slices.ContainsFunc([]string{"operatorframework.io/", "operators.openshift.io/", "features.operators.openshift.io/"}, func(prefix string) bool {
			return strings.HasPrefix(annotation, prefix)
		})
}

// changedText returns the added and removed lines and sentences of a text.
func changedText(was, is string) ReadingText {
	a, b := splitSentences(was), splitSentences(is)
	var out ReadingText
	unified, err := udiff.ToUnifiedDiff("", "", a, udiff.Lines(a, b), 0)
	if err != nil {
		panic(fmt.Sprintf("diff: text changes do not apply to the text: %v", err))
	}
	for _, hunk := range unified.Hunks {
		for _, l := range hunk.Lines {
			text := strings.TrimSpace(sanitize.Line(l.Content))
			if l.Kind == udiff.Equal || text == "" {
				continue
			}
			if len(out.Lines) == maxSentences {
				out.Omitted++
				continue
			}
			sign := "+ "
			if l.Kind == udiff.Delete {
				sign = "- "
			}
			out.Lines = append(out.Lines, sign+sanitize.Truncate(text, maxSentence))
		}
	}
	return out
}

// splitSentences puts each sentence on a line of its own, so that changes within a paragraph are
// found. Each line ends with a line break and has no trailing white space.
func splitSentences(text string) string {
	var b strings.Builder
	for line := range strings.Lines(sanitize.Truncate(text, maxProse)) {
		b.WriteString(strings.ReplaceAll(strings.TrimRight(line, " \t\r\n"), ". ", ".\n") + "\n")
	}
	return b.String()
}

// Title returns the text of the link for reports.
func (l ReadingLink) Title() string {
	switch l.What {
	case "changes":
		return "changes (tags guessed): " + l.Text
	case "link":
		return sanitize.Line(l.Text)
	}
	return l.What
}

// Title returns the name of the text and the number of changed lines.
func (t ReadingText) Title() string {
	added, removed := 0, 0
	for _, line := range t.Lines {
		if strings.HasPrefix(line, "+") {
			added++
		} else {
			removed++
		}
	}
	if t.Omitted > 0 {
		return fmt.Sprintf("%s, changed in more than %d places", t.Name, maxSentences)
	}
	return fmt.Sprintf("%s: %d added, %d removed", t.Name, added, removed)
}

// maxReading is the maximum size of all reading lists in a comment, in bytes.
const maxReading = 12_000

func (w *textWriter) writeReading(list []Reading) {
	for i, r := range list {
		if i == 0 {
			w.linef("\n%s", w.bold("reading list"))
		}
		w.linef("  %s", sanitize.Line(r.Operator))
		for _, l := range r.Links {
			line := sanitize.Line(l.Title()) + ": " + l.URL
			if l.Before != "" {
				line += " (was " + l.Before + ")"
			}
			w.linef("    - %s", line)
		}
		for _, t := range r.Texts {
			w.linef("    - %s", sanitize.Line(t.Title()))
			for _, line := range t.Lines {
				w.linef("        %s", sanitize.Line(line))
			}
			if t.Omitted > 0 {
				w.linef("        and %d more", t.Omitted)
			}
		}
	}
}

func markdownReading(b *strings.Builder, list []Reading) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n<details><summary><b>Reading list</b></summary>\n\n")
	remaining := maxReading
	for i, r := range list {
		text := formatReading(r)
		if remaining -= len(text); remaining < 0 {
			fmt.Fprintf(b, "%s not shown here: see the JSON report.\n", pluralize(len(list)-i, "operator is", "operators are"))
			break
		}
		b.WriteString(text)
	}
	b.WriteString("\n</details>\n")
}

// formatReading formats the reading list of one operator in Markdown.
func formatReading(r Reading) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s\n", sanitize.Code(sanitize.Truncate(r.Operator, 120)))
	for _, l := range r.Links {
		b.WriteString("  - " + sanitize.Link(sanitize.Truncate(l.Title(), 200), l.URL))
		if l.Before != "" {
			b.WriteString(", was " + sanitize.Link("another URL", l.Before))
		}
		b.WriteString("\n")
	}
	for _, t := range r.Texts {
		fmt.Fprintf(&b, "  - %s\n", sanitize.Markdown(sanitize.Truncate(t.Title(), 200)))
		for i, line := range t.Lines {
			if i == maxSteps {
				fmt.Fprintf(&b, "    - and %d more\n", len(t.Lines)-maxSteps+t.Omitted)
				break
			}
			fmt.Fprintf(&b, "    - %s\n", sanitize.Code(line))
		}
	}
	return b.String()
}

// htmlReading returns the first reading lists, as many as fit on the page.
func htmlReading(list []Reading) []Reading {
	budget := byteBudget(maxPage / 16)
	for i, r := range list {
		texts := []string{r.Operator}
		for _, l := range r.Links {
			texts = append(texts, l.Title(), l.URL, l.Before)
		}
		for _, t := range r.Texts {
			texts = append(append(texts, t.Title()), t.Lines...)
		}
		for _, text := range texts {
			budget -= byteBudget(escapedLength(text)) + 60 // markup: up to 60 bytes
		}
		if !budget.fit() {
			return list[:i]
		}
	}
	return list
}
