package declare

import (
	"fmt"
	"path"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// A GitOps tool can install a chart of another repository. Most of these charts are applications and not
// operators. So an object of the tool is read as a [Subscription] of its chart only if a path names the
// file, or if the object has the label [survey.SelectLabel].

// ChartSource is a repository or registry of charts, to which objects of GitOps tools refer.
type ChartSource struct {
	ID    string // "kind namespace/name" of Flux, and the directory of a chart in a GitRepository; the location of a chart or of its repository for Argo CD
	Name  string // name of the catalog
	URL   string
	OCI   bool   // whether URL lacks the name of the chart
	Range string // range of versions of an OCIRepository
	Fault string // reason why Flux would choose other versions; empty: it chooses the same
	Pos   diag.Pos
}

// declareChart declares s, the Subscription of a chart. source is the ID of the chart's ChartSource. own
// contains the values in the object that installs the chart.
func (r *reader) declareChart(c checker, s Subscription, source string, own []byte) {
	fields := fieldsOf(s.Dialect)
	c.checkRange(fields[FieldRange], s.Range)
	s.Approval, s.Policy, s.Pos, s.Fields = Automatic, CatalogProvided, c.Whole, c.Fields
	s.ChartSource, s.OwnValues, s.ChartValues = source, own, own
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
}

// reject adds a fault for a field without an equivalent, if it is set.
func (c checker) reject(field string, isSet bool, remedy string) {
	if isSet {
		c.Addf(field, "not supported for operators: %s", remedy)
	}
}

// kind returns the kind of the objects of a dialect.
func (d Dialect) kind() string {
	switch d {
	case flux:
		return "HelmRelease"
	case argo:
		return "Application"
	default:
		return "Subscription"
	}
}

// addChartCatalogs adds catalogs for the charts that GitOps tools install. Each chart source that an object
// refers to becomes a catalog with the name of the source. An object is unread if its source is missing or
// unsupported, or if two sources have the same name.
func (s *Set) addChartCatalogs() {
	byID := map[string]ChartSource{}
	for _, src := range s.ChartSources {
		if other, twice := byID[src.ID]; twice && (other.URL != src.URL || other.Range != src.Range) {
			src.Fault = fmt.Sprintf("%s has two contents: at %s and at %s", src.ID, other.Pos, src.Pos)
		}
		byID[src.ID] = src
	}
	var kept []Subscription
	locations := map[string]string{} // by the name of the catalog
	for _, d := range s.Subscriptions {
		if d.ChartSource == "" {
			kept = append(kept, d)
			continue
		}
		src, declared := byID[d.ChartSource]
		at := d.At(FieldCatalog)
		unread := func(e error) {
			s.Unread = append(s.Unread, unreadAll(at, e, Unread{Kind: d.Dialect.kind(), Namespace: d.Namespace, Name: d.Name, Package: d.Package})...)
		}
		switch {
		case !declared:
			unread(diag.Hintf(at, "list its file in spec.declarations", "%s is not declared", d.ChartSource))
			continue
		case src.Fault != "":
			unread(diag.Errorf(at, "%s", src.Fault))
			continue
		}
		if err := s.addReferredValues(&d); err != nil {
			unread(err)
			continue
		}
		name, location := src.Name, src.URL
		switch {
		case d.Package == "": // an OCIRepository contains a single chart
			d.Package, d.Range = path.Base(src.URL), src.Range
		case src.OCI:
			name, location = name+"-"+d.Package, src.URL+"/"+d.Package
		}
		if other, known := locations[name]; known && other != location {
			unread(diag.Hintf(at, "rename one of them", "%s gives a catalog the name %q, which is that of %s", d.ChartSource, name, other))
			continue
		} else if !known {
			locations[name] = location
			s.CatalogSources = append(s.CatalogSources, CatalogSource{ID: catalog.ID{Name: name}, Charts: location, Pos: src.Pos, Content: src.Pos})
		}
		d.Catalog, d.ChartSource = &catalog.ID{Name: name}, ""
		d.Digest = d.digest()
		kept = append(kept, d)
	}
	s.Subscriptions = kept
}
