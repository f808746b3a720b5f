package rules

import (
	"fmt"

	"github.com/quayside/quayside/internal/diag"
)

// ChangedFiles are files with different contents in a commit and in its checkout, because Git converts them.
type ChangedFiles struct {
	Pos       diag.Pos // of the Git attribute
	Attribute string   // such as "filter"; empty if the file with attributes is not text
	Macro     string   // macro that sets the attribute; may be empty
	Files     []string // in the repository, sorted
}

// checkAttributes returns an error for Git attributes that change the content of files. Such a file differs
// between the reviewed commit and the applied checkout. No waiver can accept the error, because the change that
// adds the attribute could also add the waiver.
func checkAttributes(s *State) (Findings, error) {
	if s.Attributes == nil {
		return nil, nil
	}
	changed, err := s.Attributes()
	var out Findings
	for _, c := range changed {
		f := Finding{
			Severity: Error, Pos: c.Pos, Subject: c.Files[0],
			Msg:  fmt.Sprintf("the Git attribute %q changes the content of files in a checkout: %s", c.Attribute, diag.Some(c.Files, 3)),
			Hint: "remove the attribute, or restrict its pattern to files that are not applied to a cluster",
		}
		switch {
		case c.Attribute == "":
			f.Msg = "the Git attributes are not UTF-8 text, and may change the content of files in a checkout: " + diag.Some(c.Files, 3)
			f.Hint = "write the file as UTF-8 text"
		case c.Macro != "":
			f.Msg = fmt.Sprintf("the Git attribute %q, a macro that sets %q, changes the content of files in a checkout: %s", c.Macro, c.Attribute, diag.Some(c.Files, 3))
		}
		out = append(out, f)
	}
	return out, err
}
