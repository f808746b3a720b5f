package diff

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/sanitize"
)

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
