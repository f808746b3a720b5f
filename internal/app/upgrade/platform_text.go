package upgrade

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/sanitize"
	"github.com/quayside/quayside/internal/base/terminal"
)

// Write prints the operators, the problems, and the upgrades to make.
func (r *PlatformReport) Write(w *terminal.Terminal) {
	t := &terminal.Table{Head: []string{"operator", "pinned", "verdict", "upgrade to"}}
	to := map[string]string{}
	for _, s := range r.Upgrades {
		to[s.Operator] = s.To
	}
	for _, op := range r.Operators {
		t.Add(op.Operator, op.Version, string(op.Verdict), to[op.Operator])
	}
	t.Write(w)
	if len(r.Problems) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w, p.format())
	}
	if r.Supported {
		fmt.Fprintf(w, "\nready for %s\n", r.Platform)
		return
	}
	fmt.Fprintf(w, "\nnot ready for %s\n", r.Platform)
	for _, why := range r.Why {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(sanitize.Lines(why), "\n", "\n  "))
	}
	if len(r.Upgrades) > 0 {
		fmt.Fprintf(w, "no blockers left after %s:\n", diag.Count(len(r.Upgrades), "upgrade"))
		for _, s := range r.Upgrades {
			fmt.Fprintf(w, "  %s %s → %s\n", sanitize.Line(s.Operator), sanitize.Line(s.From), sanitize.Line(s.To))
		}
	}
	if r.Command != "" {
		fmt.Fprintf(w, "\n  %s\n", sanitize.Line(r.Command))
	}
}

// format formats a problem like a compiler, in one line that starts with its position.
func (p Problem) format() string {
	level, text := "deprecated", ""
	if p.Blocks {
		level = "blocked"
	}
	if p.Place != nil {
		text = diag.Pos{File: p.Place.Path, Line: p.Place.Line, Col: p.Place.Column}.String() + ": "
	}
	text += level + ": "
	if p.Operator != "" {
		text += p.Operator + ": "
	}
	if p.Object != nil {
		text += p.Object.String() + ": "
	}
	text += p.Message
	if len(p.Clusters) > 0 {
		text += " (" + strings.Join(p.Clusters, ", ") + ")"
	}
	return sanitize.Line(text)
}
