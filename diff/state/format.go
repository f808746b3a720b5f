package state

import (
	"fmt"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/project"
)

// Formats returns the forms of a report that others read.
func Formats() []string { return []string{"markdown", "sarif", "html", "codequality"} }

// Format returns a report of the comparison in one of Formats. Its places have the
// links that [Comparison.Link] finds with base where the form is a page.
func (c *Comparison) Format(r *diff.Report, form, base string) ([]byte, error) {
	switch form {
	case "markdown":
		return diff.Markdown(r), nil
	case "sarif":
		return diff.SARIF(r, c.InRepo(project.LockFile))
	case "codequality":
		return diff.CodeQuality(r, c.InRepo(project.LockFile))
	case "html":
		if err := c.Link(r, base); err != nil {
			return nil, fmt.Errorf("--link-base: %w", err)
		}
		return diff.HTML(r)
	default:
		return nil, fmt.Errorf("a report has no form %q", form)
	}
}
