package bom

import "github.com/quayside/quayside/internal/terminal"

// List is the components of a bill of materials, a line each.
type List struct {
	Components []Entry `json:"components"`
}

// Entry is one of them.
type Entry struct {
	Kind      string `json:"kind" doc:"operator, catalog or image"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty" doc:"of an operator; digest or tag of an image"`
	Purl      string `json:"purl,omitempty"`
}

// List returns the components of d.
func (d *Document) List() List {
	kinds := map[string]string{Operator: "operator", Catalog: "catalog", Image: "image"}
	l := List{Components: []Entry{}}
	for _, c := range d.Components {
		l.Components = append(l.Components, Entry{kinds[c.Type], c.Group, c.Name, c.Version, c.Purl})
	}
	return l
}

// Table returns l as text.
func (l List) Table() *terminal.Table {
	t := &terminal.Table{Head: []string{"kind", "namespace", "name", "version"}}
	for _, c := range l.Components {
		t.Add(c.Kind, c.Namespace, c.Name, c.Version)
	}
	return t
}
