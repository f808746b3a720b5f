package sqlite

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
)

// readTables reads what bundles say of themselves and require, as far as the
// schema has it.
func (l *loader) readTables() error {
	for _, t := range []struct {
		name    string
		columns []string // behind the bundle's name
		take    func(b *bundleRow, r []string)
	}{
		{"properties", []string{"type", "value"}, func(b *bundleRow, r []string) { l.add(b, &b.properties, r[1], r[2]) }},
		{"dependencies", []string{"type", "value"}, func(b *bundleRow, r []string) { l.require(b, r[1], r[2]) }},
		{"related_image", []string{"image"}, func(b *bundleRow, r []string) {
			if r[1] != "" {
				b.images = append(b.images, r[1])
			}
		}},
		{"deprecated", nil, func(b *bundleRow, _ []string) { b.deprecated = true }},
	} {
		columns := append([]string{"operatorbundle_name"}, t.columns...)
		if !l.has(t.name, columns...) {
			continue
		}
		list := strings.Join(columns, ", ")
		if err := l.ofBundles("SELECT DISTINCT "+list+" FROM "+t.name+" ORDER BY "+list, len(columns), t.take); err != nil {
			return err
		}
	}
	return nil
}

// ofBundles calls take for each row that begins with the name of a bundle that
// is there.
func (l *loader) ofBundles(query string, columns int, take func(b *bundleRow, r []string)) error {
	return l.each(query, columns, func(r []string) {
		if b := l.bundles[r[0]]; b != nil {
			take(b, r)
		}
	})
}

// add notes a property whose value must be JSON.
func (l *loader) add(b *bundleRow, list *[]catalog.Property, typ, value string) {
	if !json.Valid([]byte(value)) {
		l.faults.Addf(diag.Pos{File: l.file}, "bundle %q: property %q: %q is not JSON", b.name, typ, inert.Cut(value, maxShown))
		return
	}
	*list = append(*list, catalog.Property{Type: typ, Value: json.RawMessage(value)})
}

// require notes a dependency as the property that file-based catalogs have for
// it.
func (l *loader) require(b *bundleRow, typ, value string) {
	p, err := olm.Dependency(catalog.Property{Type: typ, Value: json.RawMessage(value)})
	if err != nil {
		l.faults.Addf(diag.Pos{File: l.file}, "bundle %q: dependency %q: %w", b.name, typ, err)
		return
	}
	l.add(b, &b.requires, p.Type, string(p.Value))
}

// readAPIs reads the tables that came before properties and dependencies,
// where these are absent.
func (l *loader) readAPIs() error {
	if l.tables["properties"] == nil {
		err := l.apis("api_provider", func(b *bundleRow, g catalog.GVK) { b.properties = append(b.properties, olm.Provided(g)) })
		if err != nil {
			return err
		}
	}
	if l.tables["dependencies"] == nil {
		return l.apis("api_requirer", func(b *bundleRow, g catalog.GVK) { b.requires = append(b.requires, olm.Required(g)) })
	}
	return nil
}

// apis reads one of two tables, which name the bundle or an entry of it.
func (l *loader) apis(table string, take func(*bundleRow, catalog.GVK)) error {
	var query string
	switch {
	case l.has(table, "operatorbundle_name"):
		query = "SELECT DISTINCT operatorbundle_name, group_name, kind, version FROM " + table + " ORDER BY 1, 2, 3, 4"
	case l.has(table, "channel_entry_id") && l.has("channel_entry", "entry_id"):
		query = "SELECT DISTINCT e.operatorbundle_name, a.group_name, a.kind, a.version FROM " + table +
			" a JOIN channel_entry e ON e.entry_id = a.channel_entry_id ORDER BY 1, 2, 3, 4"
	default:
		return nil
	}
	return l.ofBundles(query, 4, func(b *bundleRow, r []string) {
		take(b, catalog.GVK{Group: r[1], Kind: r[2], Version: r[3]})
	})
}

// all returns a bundle's properties as a file-based catalog would have them.
func (b *bundleRow) all(pkg string) []catalog.Property {
	out := slices.Concat(b.properties, b.requires)
	has := func(typ string) bool {
		return slices.ContainsFunc(out, func(p catalog.Property) bool { return p.Type == typ })
	}
	if !has(olm.TypePackage) {
		out = append(out, olm.Named(pkg, b.version))
	}
	if b.deprecated && !has(olm.TypeDeprecated) {
		out = append(out, catalog.Property{Type: olm.TypeDeprecated, Value: json.RawMessage("{}")})
	}
	return out
}

// maxShown is how much of a value a message quotes, in bytes.
const maxShown = 100
