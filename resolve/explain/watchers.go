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

// Watchers returns the operators of a lock that watch a namespace, sorted by their own namespace and package.
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

// Obstacles lists the reasons why a version of a package cannot be installed.
type Obstacles struct {
	Namespace string    `json:"namespace"`
	Package   string    `json:"package"`
	Version   string    `json:"version"`
	Bundle    string    `json:"bundle,omitempty"`
	Pinned    bool      `json:"pinned"`             // the version is already pinned
	Reasons   []string  `json:"against"`            // reasons; empty if there are no obstacles
	Conflict  *Conflict `json:"conflict,omitempty"` // set if there is no solution with the version
	Changes   []Remedy  `json:"changes"`            // changes that remove the obstacles, each on its own and proven by trying; least invasive first
	Tried     int       `json:"tried"`              // number of changes that were tried
}

// Text returns the obstacles and the changes as text.
func (o *Obstacles) Text() string {
	var b strings.Builder
	b.WriteString(sanitize.Line(o.Namespace+"/"+o.Package+" "+o.Version) + "\n")
	switch {
	case o.Pinned:
		b.WriteString("\tis pinned\n")
	case len(o.Reasons) == 0:
		b.WriteString("\tnothing prevents its installation\n")
	}
	for _, a := range o.Reasons {
		b.WriteString("\t" + sanitize.Line(a) + "\n")
	}
	if !o.Pinned {
		b.WriteString("\t" + strings.Join(formatAdvice("allows", o.Changes, o.Tried), "\n\t") + "\n")
	}
	return b.String()
}
