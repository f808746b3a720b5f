package adopt

import (
	"fmt"
	"io"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/render/needs"
)

// Blocked returns the operators in the tree that cannot be adopted now, as namespace/package.
func (rep *Inspection) Blocked() (names []string) {
	for _, op := range rep.Operators {
		if op.State.StaysWithOLM() && op.State != NotSelected {
			names = append(names, op.Key())
		}
	}
	return names
}

// WriteText writes each operator with its reasons. If objects is true, it also writes the objects.
func (rep *Inspection) WriteText(w io.Writer, objects bool) {
	for _, op := range rep.Operators {
		name := op.Key()
		if op.CSV != "" {
			name += " (" + op.CSV + ")"
		} else if op.Release != nil {
			name += " (Helm release " + op.Release.Name + ")"
		}
		fmt.Fprintf(w, "%s: %s; %s\n", sanitize.Line(name), op.State, formatCounts(op.Counts))
		for _, r := range op.Reasons {
			fmt.Fprintf(w, "    %s\n", sanitize.Line(r.Message))
		}
		op.Release.writeText(w)
		if objects {
			listObjects(w, op.Objects)
		}
	}
	if objects && len(rep.Shared) > 0 {
		fmt.Fprint(w, "shared by several operators, or of none\n")
		listObjects(w, rep.Shared)
	}
	writeUnread(w, rep.Unread)
	fmt.Fprintf(w, "%s; %s\n", diag.Count(len(rep.Operators), "operator"), formatCounts(rep.Counts))
}

func formatCounts(n Counts) string {
	return fmt.Sprintf("%s: %d equal, %d changed, %d only from OLM, %d unknown; %d added",
		diag.Count(n.Live, "object"), n.Equal, n.Changed, n.OLM, n.Unknown, n.Added)
}

func listObjects(w io.Writer, objects []ClassifiedObject) {
	for _, x := range objects {
		line := fmt.Sprintf("    %-8s %s", x.Class, x.Key)
		if x.RemovedAt != "" {
			line += " (" + string(x.RemovedAt) + "): " + x.Reason
		}
		fmt.Fprintf(w, "%s\n", sanitize.Line(line))
		for _, f := range x.Changes() {
			fmt.Fprintf(w, "%s\n", sanitize.Line(fmt.Sprintf("             %s: %s", f.Kind, f.Path)))
		}
	}
}

// Dependents returns the operators (namespace/package) that need OLM, or lose functions without it.
func (d *Diagnosis) Dependents() (names []string) {
	for _, op := range d.Operators {
		if op.NeedsOLM == needs.NeedsOLM || op.NeedsOLM == needs.InPart {
			names = append(names, op.Key())
		}
	}
	return names
}

// WriteText writes each operator with the evidence of its need for OLM.
func (d *Diagnosis) WriteText(w io.Writer) {
	verdicts := map[needs.OLMNeed]string{
		needs.NeedsOLM: "needs OLM", needs.InPart: "loses functions without OLM", needs.MayNeed: "could need OLM", needs.NeedsNone: "does not need OLM",
	}
	count := map[needs.OLMNeed]int{}
	for _, op := range d.Operators {
		count[op.NeedsOLM]++
		fmt.Fprintf(w, "%s: %s\n", sanitize.Line(op.Key()+" ("+op.Bundle+")"), verdicts[op.NeedsOLM])
		for _, s := range op.Signals {
			fmt.Fprintf(w, "    %s\n", sanitize.Line(s.Object+" "+s.What))
			fmt.Fprintf(w, "        without OLM: %s\n        remedy: %s\n", s.Loses, s.Do)
		}
		if len(op.Definitions) > 0 {
			fmt.Fprintf(w, "    keep when OLM is uninstalled, because the operator watches them: %s\n", strings.Join(op.Definitions, ", "))
		}
	}
	writeUnread(w, d.Unread)
	fmt.Fprintf(w, "%s: needs OLM: %d; loses functions without OLM: %d; could need OLM: %d; does not need OLM: %d\n",
		diag.Count(len(d.Operators), "operator"), count[needs.NeedsOLM], count[needs.InPart], count[needs.MayNeed], count[needs.NeedsNone])
}

func writeUnread(w io.Writer, kinds []snapshot.Unread) {
	for _, u := range kinds {
		fmt.Fprintf(w, "not read: %s\n", sanitize.Line(u.Kind+" ("+u.APIVersion+"): "+u.Reason))
	}
}
