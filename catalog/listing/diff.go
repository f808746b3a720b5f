package listing

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/terminal"
)

// Changed is what changed between two catalogs.
type Changed struct {
	Before  string           `json:"before"`
	After   string           `json:"after"`
	Changes []catalog.Change `json:"changes"`
}

// Write prints d as text.
func (d Changed) Write(w *terminal.Terminal) {
	last := ""
	for _, c := range d.Changes {
		if c.Part == catalog.PartPackage {
			fmt.Fprintf(w, "%s %s%s\n", sign(w, c), inert.Line(c.Package), inert.Line(at(" ", c)))
			continue
		}
		if c.Package != last {
			fmt.Fprintf(w, "%s %s\n", w.Sign("~"), inert.Line(c.Package))
			last = c.Package
		}
		fmt.Fprintf(w, "  %s %s\n", sign(w, c), inert.Line(inWords(c)))
	}
}

func sign(w *terminal.Terminal, c catalog.Change) string {
	return w.Sign(map[catalog.ChangeKind]string{catalog.Added: "+", catalog.Removed: "-", catalog.Changed: "~"}[c.Kind])
}

// inWords tells a change within a package.
func inWords(c catalog.Change) string {
	where := ""
	switch {
	case c.Channel != "" && c.Part != catalog.PartChannel:
		where = "channel " + c.Channel + ": "
	case c.Bundle != "" && c.Part != catalog.PartBundle:
		where = "bundle " + c.Bundle + ": "
	}
	change := cmp.Or(c.From, "nothing") + " → " + cmp.Or(c.To, "nothing")
	switch c.Part {
	case catalog.PartChannel:
		return "channel " + c.Channel + at(", head ", c)
	case catalog.PartBundle:
		return "bundle " + c.Bundle + at(" ", c)
	case catalog.PartEdges:
		if c.Kind == catalog.Changed {
			return where + c.Bundle + ": " + change
		}
		return where + c.Bundle + at(" ", c)
	case catalog.PartDefault:
		return "default channel: " + change
	case catalog.PartLifecycle:
		return "support of " + c.Version + ": " + change
	case catalog.PartImages:
		return where + "related images: " + change
	default:
		return where + string(c.Part) + ": " + change
	}
}

// at returns what is known of a part that one side alone has.
func at(before string, c catalog.Change) string {
	if c.From+c.To == "" {
		return ""
	}
	return before + c.From + c.To
}
