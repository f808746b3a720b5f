package sqlite

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// readTables reads the properties, dependencies and other values of bundles from the tables that
// exist in this version of the schema.
func (l *loader) readTables() error {
	for _, t := range []struct {
		name    string
		columns []string // columns to read after the bundle name
		take    func(b *bundleRow, r []string)
	}{
		{"properties", []string{"type", "value"}, func(b *bundleRow, r []string) { l.addProperty(b, &b.properties, r[1], r[2]) }},
		{"dependencies", []string{"type", "value"}, func(b *bundleRow, r []string) { l.addDependency(b, r[1], r[2]) }},
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
		if err := l.eachBundleRow("SELECT DISTINCT "+list+" FROM "+t.name+" ORDER BY "+list, len(columns), t.take); err != nil {
			return err
		}
	}
	return nil
}

// eachBundleRow calls the function take for each row of a query. The first column is the name of a bundle. Rows
// of unknown bundles are ignored.
func (l *loader) eachBundleRow(query string, columns int, take func(b *bundleRow, r []string)) error {
	return l.eachRow(query, columns, func(r []string) {
		if b := l.bundles[r[0]]; b != nil {
			take(b, r)
		}
	})
}

// addProperty adds a property of bundle b to a list. A value that is not JSON is a fault.
func (l *loader) addProperty(b *bundleRow, list *[]catalog.Property, typ, value string) {
	if !json.Valid([]byte(value)) {
		l.faults.Addf(diag.Pos{File: l.file}, "bundle %q: property %q: %q is not JSON", b.name, typ, sanitize.Truncate(value, maxShown))
		return
	}
	*list = append(*list, catalog.Property{Type: typ, Value: json.RawMessage(value)})
}

// addDependency adds a dependency to b.requires. It converts the type to a property type of file-based catalogs.
func (l *loader) addDependency(b *bundleRow, typ, value string) {
	p, err := catalog.Dependency(catalog.Property{Type: typ, Value: json.RawMessage(value)})
	if err != nil {
		l.faults.Addf(diag.Pos{File: l.file}, "bundle %q: dependency %q: %w", b.name, typ, err)
		return
	}
	l.addProperty(b, &b.requires, p.Type, string(p.Value))
}

// readAPIs reads provided APIs from a table of older schemas, if there is no table "properties". If there is no
// table "dependencies", it also reads the required APIs.
func (l *loader) readAPIs() error {
	if l.tables["properties"] == nil {
		err := l.readAPITable("api_provider", func(b *bundleRow, g catalog.GVK) { b.properties = append(b.properties, catalog.GVKProperty(g)) })
		if err != nil {
			return err
		}
	}
	if l.tables["dependencies"] == nil {
		return l.readAPITable("api_requirer", func(b *bundleRow, g catalog.GVK) { b.requires = append(b.requires, catalog.RequiredGVKProperty(g)) })
	}
	return nil
}

// readAPITable reads one of the API tables. Depending on the schema, a row of the table refers to a
// bundle or to a channel entry of the bundle.
func (l *loader) readAPITable(table string, take func(*bundleRow, catalog.GVK)) error {
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
	return l.eachBundleRow(query, 4, func(b *bundleRow, r []string) {
		take(b, catalog.GVK{Group: r[1], Kind: r[2], Version: r[3]})
	})
}

// allProperties returns all properties of a bundle for a file-based catalog.
func (b *bundleRow) allProperties(pkg string) []catalog.Property {
	out := slices.Concat(b.properties, b.requires)
	has := func(typ string) bool {
		return slices.ContainsFunc(out, func(p catalog.Property) bool { return p.Type == typ })
	}
	if !has(catalog.TypePackage) {
		out = append(out, catalog.PackageProperty(pkg, b.version))
	}
	if b.deprecated && !has(catalog.TypeDeprecated) {
		out = append(out, catalog.Property{Type: catalog.TypeDeprecated, Value: json.RawMessage("{}")})
	}
	return out
}

// maxShown is the maximum number of bytes of a value in a message.
const maxShown = 100
