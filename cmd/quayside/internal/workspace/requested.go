package workspace

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// requestedUpgrades returns an upgrade for each pinned operator whose declaration requests another
// version: a higher or edited startingCSV, or a range that excludes the pinned version. Any other
// startingCSV is the version of the first installation.
func (pr *Problem) requestedUpgrades(ctx context.Context) []resolve.Target {
	if pr.Lock == nil {
		return nil
	}
	var out []resolve.Target
	for _, s := range pr.Declared.Subscriptions {
		pin, pinned := resolve.PinOf(pr.Lock, s)
		id := pin.Catalog.ID
		if s.Catalog != nil {
			id = *s.Catalog
		}
		cat, read := pr.Index.Catalog(id)
		if !pinned || !read || s.Bundle != "" || s.Hold != "" {
			continue
		}
		pkg, ok := cat.Package(s.Package)
		if !ok {
			continue
		}
		version, at, ok := requestedVersion(s, pin, pkg)
		if !ok && pr.hasEditedStart(ctx, s, pin) {
			version, at, ok = startingVersion(s, pkg), s.At(declare.FieldStartingCSV), true
		}
		if ok {
			out = append(out, resolve.Target{Namespace: pin.Namespace, Package: pin.Package, Version: version, At: at})
		}
	}
	return out
}

// hasEditedStart reports whether the startingCSV of a declaration has been edited since the commit
// that last changed the pin. It returns false for an unknown commit.
func (pr *Problem) hasEditedStart(ctx context.Context, s declare.Subscription, pin lockfile.Pin) bool {
	if s.StartingCSV == "" || s.StartingCSV == pin.Bundle || resolve.HasDeclaration(pr.Declared, pin) {
		return false
	}
	set := declaredAtPin(ctx, pr.project, pin)
	return set != nil && slices.ContainsFunc(set.Subscriptions, func(old declare.Subscription) bool {
		return old.Dialect == s.Dialect && old.Key() == s.Key() && old.StartingCSV != s.StartingCSV
	})
}

// startingVersion returns the version of a startingCSV. If the package does not contain this
// bundle, it returns the part of the bundle name after the package name.
func startingVersion(s declare.Subscription, pkg *catalog.Package) string {
	if b, ok := pkg.Bundle(s.StartingCSV); ok {
		return b.Version().String()
	}
	return strings.TrimPrefix(strings.TrimPrefix(s.StartingCSV, s.Package+"."), "v")
}

// requestedVersion returns the version that a declaration requests instead of the pinned one, with its position.
// For a range, this is the highest version in it that upgrades can reach. It returns false if there is none.
func requestedVersion(s declare.Subscription, pin lockfile.Pin, pkg *catalog.Package) (string, diag.Pos, bool) {
	pinned, err := catalog.ParseVersion(pin.Version)
	if err != nil {
		return "", diag.Pos{}, false
	}
	if b, ok := pkg.Bundle(s.StartingCSV); ok && b.Version().Compare(pinned) > 0 {
		return b.Version().String(), s.At(declare.FieldStartingCSV), true
	}
	within, err := catalog.ParseVersions(s.Range)
	if s.Range == "" || err != nil || within(pin.Version) {
		return "", diag.Pos{}, false
	}
	var best *catalog.Bundle
	for _, b := range successors(pkg, s.Channels, pin.Bundle) {
		if within(b.Version().String()) && b.Version().Compare(pinned) > 0 && (best == nil || b.Version().Compare(best.Version()) > 0) {
			best = b
		}
	}
	if best == nil {
		return "", diag.Pos{}, false
	}
	return best.Version().String(), s.At(declare.FieldRange), true
}

// successors returns the bundles that a bundle can be upgraded to, over any number of edges in the given
// channels. If channels is empty, it uses all channels.
func successors(pkg *catalog.Package, channels []string, from string) []*catalog.Bundle {
	var out []*catalog.Bundle
	seen := map[string]bool{from: true}
	for open := []string{from}; len(open) > 0; open = open[1:] {
		var version *catalog.Version
		if b, ok := pkg.Bundle(open[0]); ok {
			v := b.Version()
			version = &v
		}
		for _, c := range pkg.Channels() {
			if len(channels) > 0 && !slices.Contains(channels, c.Name()) {
				continue
			}
			for _, e := range c.Entries() {
				if b := e.Bundle(); b != nil && !seen[b.Name()] && e.EdgeFrom(open[0], version) != catalog.NoEdge {
					seen[b.Name()] = true
					open, out = append(open, b.Name()), append(out, b)
				}
			}
		}
	}
	return out
}
