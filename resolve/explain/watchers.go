package explain

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Watcher is an operator that watches a namespace.
type Watcher struct {
	Namespace  string   `json:"namespace"`
	Package    string   `json:"package"`
	Version    string   `json:"version"`
	Namespaces []string `json:"watchNamespaces" doc:"namespaces that the operator watches; empty: all"`
	Provides   []string `json:"provides" doc:"APIs that the operator provides"`
}

// Key returns "namespace/package".
func (w Watcher) Key() string { return w.Namespace + "/" + w.Package }

// Watchers returns the operators of a lock that watch a namespace, sorted by namespace and package.
func Watchers(lock *lockfile.File, namespace string) []Watcher {
	out := []Watcher{}
	for _, p := range lock.Pins {
		if len(p.WatchNamespaces) > 0 && !slices.Contains(p.WatchNamespaces, namespace) {
			continue
		}
		w := Watcher{Namespace: p.Namespace, Package: p.Package, Version: p.VersionText(), Namespaces: append([]string{}, p.WatchNamespaces...), Provides: []string{}}
		for _, g := range catalog.Read(p.Properties).Provides {
			w.Provides = append(w.Provides, g.String())
		}
		out = append(out, w)
	}
	return out
}

// WatchersText formats operators, one per line, with a line indented by a tab for each API.
func WatchersText(list []Watcher) string {
	var b strings.Builder
	for _, w := range list {
		watches := "all namespaces"
		if len(w.Namespaces) > 0 {
			watches = strings.Join(w.Namespaces, ", ")
		}
		b.WriteString(sanitize.Line(w.Key()+" "+w.Version+" (watches "+watches+")") + "\n")
		for _, api := range w.Provides {
			b.WriteString("\t" + sanitize.Line(api) + "\n")
		}
	}
	return b.String()
}
