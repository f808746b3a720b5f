package inventory

import (
	"cmp"
	"fmt"

	"github.com/quayside/quayside/internal/base/sanitize"
	"github.com/quayside/quayside/internal/base/terminal"
	"github.com/quayside/quayside/internal/model"
)

// CatalogChanges is the list of changes between two catalogs.
type CatalogChanges struct {
	Before  string                `json:"before"`
	After   string                `json:"after"`
	Changes []model.CatalogChange `json:"changes"`
}

// Write prints the changes as text.
func (d CatalogChanges) Write(w *terminal.Terminal) {
	last := ""
	for _, c := range d.Changes {
		if c.Part == model.PartPackage {
			fmt.Fprintf(w, "%s %s%s\n", changeSign(w, c), sanitize.Line(c.Package), sanitize.Line(withPrefix(" ", c)))
			continue
		}
		if c.Package != last {
			fmt.Fprintf(w, "%s %s\n", w.Sign("~"), sanitize.Line(c.Package))
			last = c.Package
		}
		fmt.Fprintf(w, "  %s %s\n", changeSign(w, c), sanitize.Line(describeChange(c)))
	}
}

func changeSign(w *terminal.Terminal, c model.CatalogChange) string {
	return w.Sign(map[model.ChangeKind]string{model.Added: "+", model.Removed: "-", model.Changed: "~"}[c.Kind])
}

// describeChange describes a change within a package.
func describeChange(c model.CatalogChange) string {
	where := ""
	switch {
	case c.Channel != "" && c.Part != model.PartChannel:
		where = "channel " + c.Channel + ": "
	case c.Bundle != "" && c.Part != model.PartBundle:
		where = "bundle " + c.Bundle + ": "
	}
	change := cmp.Or(c.From, "nothing") + " → " + cmp.Or(c.To, "nothing")
	switch c.Part {
	case model.PartChannel:
		return "channel " + c.Channel + withPrefix(", head ", c)
	case model.PartBundle:
		return "bundle " + c.Bundle + withPrefix(" ", c)
	case model.PartEdges:
		if c.Kind == model.Changed {
			return where + c.Bundle + ": " + change
		}
		return where + c.Bundle + withPrefix(" ", c)
	case model.PartDefault:
		return "default channel: " + change
	case model.PartLifecycle:
		return "support of " + c.Version + ": " + change
	case model.PartImages:
		return where + "related images: " + change
	default:
		return where + string(c.Part) + ": " + change
	}
}

// withPrefix returns the value of an added or removed part after a prefix, or "" without a value.
func withPrefix(before string, c model.CatalogChange) string {
	if c.From+c.To == "" {
		return ""
	}
	return before + c.From + c.To
}
