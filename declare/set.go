package declare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

// Set contains all declarations of a workspace. Each slice is sorted by namespace, then name.
type Set struct {
	Subscriptions  []Subscription
	OperatorGroups []OperatorGroup
	CatalogSources []CatalogSource
	CSVs           []ClusterServiceVersion
	Namespaces     []Namespace
	Images         []BundleImage // bundle images in InstallPlans, in the order of the files
	Warnings       []diag.Warning
	Others         map[string]int // number of ignored objects of each kind
	Unread         []Unread       // sorted by position
	Elsewhere      []Subscription // operators that only other environments install, see [Set.In]
	ChartSources   []ChartSource  // in the order of the files
	ConfigMaps     []ConfigMap    // in the order of the files
}

// In returns the declarations for an environment. Declarations whose spec.only does not name the environment
// are in Elsewhere.
func (s *Set) In(environment string) *Set {
	isElsewhere := func(d Subscription) bool { return d.Only != nil && !slices.Contains(d.Only, environment) }
	if !slices.ContainsFunc(s.Subscriptions, isElsewhere) {
		return s
	}
	out := *s
	out.Subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), isElsewhere)
	out.Elsewhere = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(d Subscription) bool { return !isElsewhere(d) })
	return &out
}

// IgnoredSummary returns a line with the number of ignored objects of each kind, most frequent
// kinds first. It returns "" if there are none.
func (s *Set) IgnoredSummary() string {
	total := 0
	var kinds []string
	for kind, n := range s.Others {
		total += n
		kinds = append(kinds, kind)
	}
	if total == 0 {
		return ""
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if d := s.Others[b] - s.Others[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	const most = 8
	more := ""
	if n := len(kinds) - most; n > 0 {
		kinds, more = kinds[:most], " and "+diag.Count(n, "more kind")
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", s.Others[kind], sanitize.Truncate(kind, 63))
	}
	were := "were"
	if total == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s of other kinds %s ignored: %s%s", diag.Count(total, "object"), were, strings.Join(kinds, ", "), more)
}

// identities returns the identities of all declarations. An OperatorGroup in a policy has no identity.
func (s *Set) identities() []identity {
	groups := slices.DeleteFunc(slices.Clone(s.OperatorGroups), func(g OperatorGroup) bool { return g.Policy != "" })
	return slices.Concat(identitiesOf(s.Subscriptions), identitiesOf(groups), identitiesOf(s.CatalogSources), identitiesOf(s.CSVs), identitiesOf(s.Namespaces))
}

// meaningOf returns the content of the declaration d, without positions.
func (s *Set) meaningOf(d identity) any {
	return [...]any{meaningIn(s.Subscriptions, d), meaningIn(s.OperatorGroups, d), meaningIn(s.CatalogSources, d), meaningIn(s.CSVs, d), meaningIn(s.Namespaces, d)}
}

func meaningIn[T object](list []T, d identity) any {
	if i := slices.IndexFunc(list, func(x T) bool { return x.identity() == d }); i >= 0 {
		return list[i].meaning()
	}
	return nil
}

func identitiesOf[T object](list []T) []identity {
	var out []identity
	for _, d := range list {
		out = append(out, d.identity())
	}
	return out
}

// without returns a copy of s without the declarations for which drop returns true. If it drops a
// policy, it also drops the OperatorGroup in it.
func (s *Set) without(drop func(identity) bool) *Set {
	out := *s
	out.Subscriptions = dropFrom(s.Subscriptions, drop)
	out.OperatorGroups = slices.DeleteFunc(slices.Clone(s.OperatorGroups), func(g OperatorGroup) bool {
		if g.Policy != "" {
			return drop(identity{kind: "subscription", dialect: OCM, namespace: g.Namespace, name: g.Policy})
		}
		return drop(g.identity())
	})
	out.CatalogSources = dropFrom(s.CatalogSources, drop)
	out.CSVs = dropFrom(s.CSVs, drop)
	out.Namespaces = dropFrom(s.Namespaces, drop)
	return &out
}

func dropFrom[T object](list []T, drop func(identity) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(d T) bool { return drop(d.identity()) })
}

// mapPositions replaces every position p in s with mapPos(p).
func (s *Set) mapPositions(mapPos func(diag.Pos) diag.Pos) {
	all := func(fields diag.Fields) {
		for field, pos := range fields {
			fields[field] = mapPos(pos)
		}
	}
	for i := range s.Subscriptions {
		s.Subscriptions[i].Pos = mapPos(s.Subscriptions[i].Pos)
		all(s.Subscriptions[i].Fields)
	}
	for i := range s.OperatorGroups {
		s.OperatorGroups[i].Pos = mapPos(s.OperatorGroups[i].Pos)
		all(s.OperatorGroups[i].Fields)
	}
	for i := range s.CatalogSources {
		s.CatalogSources[i].Pos, s.CatalogSources[i].Content = mapPos(s.CatalogSources[i].Pos), mapPos(s.CatalogSources[i].Content)
	}
	for i := range s.ChartSources {
		s.ChartSources[i].Pos = mapPos(s.ChartSources[i].Pos)
	}
	for i := range s.ConfigMaps {
		s.ConfigMaps[i].Pos = mapPos(s.ConfigMaps[i].Pos)
	}
	for i := range s.CSVs {
		s.CSVs[i].Pos = mapPos(s.CSVs[i].Pos)
	}
	for i := range s.Namespaces {
		s.Namespaces[i].Pos = mapPos(s.Namespaces[i].Pos)
	}
	for i := range s.Warnings {
		s.Warnings[i].Pos = mapPos(s.Warnings[i].Pos)
	}
}
