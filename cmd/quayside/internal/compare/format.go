package compare

import (
	"fmt"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
)

// Formats returns the report formats for other tools.
func Formats() []string { return []string{"markdown", "sarif", "html", "codequality"} }

// Format returns a report of the comparison in one of the [Formats]. In an HTML report, findings link to their
// files. base is as in [Comparison.Link].
func (c *Comparison) Format(r *diff.Report, form, base string) ([]byte, error) {
	switch form {
	case "markdown":
		return diff.Markdown(r), nil
	case "sarif":
		return diff.SARIF(r, c.InRepo(workspace.LockFile))
	case "codequality":
		return diff.CodeQuality(r, c.InRepo(workspace.LockFile))
	case "html":
		if err := c.Link(r, base); err != nil {
			return nil, fmt.Errorf("--link-base: %w", err)
		}
		return diff.HTML(r)
	default:
		return nil, fmt.Errorf("unknown report format %q", form)
	}
}
