package charts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

// Channels of a package. Stable is the default channel, unless all versions are pre-releases.
const (
	Stable = "stable" // without pre-releases
	All    = "all"    // with pre-releases; absent if there are none
)

// Chart is one version of a chart, as far as a catalog needs it.
type Chart struct {
	Name        string       `json:"name"`
	Version     string       `json:"version"`     // as written: "v1.15.0"
	KubeVersion string       `json:"kubeVersion"` // range of versions of Kubernetes
	Description string       `json:"description"`
	Type        string       `json:"type"` // "application" or "library"
	Deprecated  bool         `json:"deprecated"`
	Keywords    []string     `json:"keywords"`
	Maintainers []maintainer `json:"maintainers"`
	URLs        []string     `json:"urls"`   // addresses of the archive, relative to the index; nil for a chart in a directory
	Digest      string       `json:"digest"` // sha256 of the archive in hexadecimal; may be empty
	Format      string       `json:"-"`      // format of the content; empty: Helm
	Image       string       `json:"-"`      // reference by tag in a registry; empty: in none
	Tag         string       `json:"-"`      // tag in a Git repository; empty: in none
	Commit      string       `json:"-"`      // of Tag, in hexadecimal
	Pos         diag.Pos     `json:"-"`

	parsed *semver.Version
}

type maintainer struct {
	Name string `json:"name"`
}

// BundleName returns the name of the bundle of a version, "NAME-VERSION". The archive of the version has the
// same name.
func BundleName(chart, version string) string { return chart + "-" + version }

// newContent returns a catalog of charts, which may be in any order. With a warning, it omits library charts,
// repeated versions, and charts with an invalid name or version. The warnings are not sorted.
func newContent(charts []Chart) catalog.Content {
	byName := map[string][]Chart{}
	var out catalog.Content
	warn := func(c Chart, format string, args ...any) {
		out.Warnings = append(out.Warnings, diag.Warning{Pos: c.Pos, Subject: c.Name, Code: "chart-skipped", Msg: fmt.Sprintf("%s: %s", BundleName(c.Name, c.Version), fmt.Sprintf(format, args...))})
	}
	for _, c := range charts {
		if c.Type == "library" {
			if !slices.ContainsFunc(out.Warnings, func(w diag.Warning) bool { return w.Subject == c.Name }) {
				warn(c, "a library chart, which has no objects of its own and cannot be installed")
			}
			continue
		}
		var err error
		switch c.parsed, err = semver.NewVersion(c.Version); {
		case err != nil:
			warn(c, "%q is not a semantic version: ignored", c.Version)
		case !catalog.IsBundleName(BundleName(c.Name, c.Version)) && !catalog.IsBundleName(BundleName(c.Name, strings.ReplaceAll(c.Version, "+", "_"))):
			warn(c, "the name is not valid: ignored")
		default:
			byName[c.Name] = append(byName[c.Name], c)
		}
	}
	for name, versions := range byName {
		slices.SortStableFunc(versions, func(a, b Chart) int { return compareVersions(a.parsed, b.parsed) })
		kept := versions[:0]
		for _, c := range versions {
			if n := len(kept); n > 0 && compareVersions(kept[n-1].parsed, c.parsed) == 0 {
				warn(c, "the index lists this version twice: the first entry is used")
				continue
			}
			kept = append(kept, c)
		}
		out.Packages = append(out.Packages, newPackage(name, kept))
	}
	slices.SortFunc(out.Packages, func(a, b catalog.PackageData) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// compareVersions compares two versions. If they are equal, it compares their build metadata as text.
func compareVersions(a, b *semver.Version) int {
	return cmp.Or(a.Compare(b), strings.Compare(a.Metadata(), b.Metadata()))
}

// newPackage returns the package of a chart. versions are in ascending order.
func newPackage(name string, versions []Chart) catalog.PackageData {
	newest := versions[len(versions)-1]
	p := catalog.PackageData{Name: name, Description: newest.Description, DefaultChannel: All, Pos: newest.Pos}
	stable := slices.DeleteFunc(slices.Clone(versions), func(c Chart) bool { return c.parsed.Prerelease() != "" })
	if len(stable) > 0 {
		p.DefaultChannel = Stable
		p.Channels = append(p.Channels, newChannel(Stable, stable))
	}
	if len(stable) < len(versions) {
		p.Channels = append(p.Channels, newChannel(All, versions))
	}
	for _, c := range versions {
		p.Bundles = append(p.Bundles, c.bundle())
		if c.Deprecated {
			p.Deprecations = append(p.Deprecations, catalog.DeprecationData{Schema: "olm.bundle", Name: BundleName(c.Name, c.Version), Message: "the chart is marked as deprecated", Pos: c.Pos})
		}
	}
	return p
}

// newChannel returns a channel with edges by version order. versions are in ascending order. Versions that the
// catalog no longer lists also have edges to newer versions.
func newChannel(name string, versions []Chart) catalog.ChannelData {
	out := catalog.ChannelData{Name: name, ByVersion: true, Pos: versions[len(versions)-1].Pos}
	minorOf := func(c Chart) [2]uint64 { return [2]uint64{c.parsed.Major(), c.parsed.Minor()} }
	var before [2]uint64 // the preceding minor version, or else the preceding major version
	if major := versions[0].parsed.Major(); major > 0 {
		before[0] = major - 1
	}
	for i, c := range versions {
		e := catalog.EntryData{Name: BundleName(c.Name, c.Version), Pos: c.Pos}
		if i > 0 {
			e.Replaces = BundleName(c.Name, versions[i-1].Version)
			if last := minorOf(versions[i-1]); last != minorOf(c) {
				before = last
			}
		}
		from := minorOf(c)
		if i == len(versions)-1 || minorOf(versions[i+1]) != from {
			from = before
		}
		e.SkipRange = fmt.Sprintf(">=%d.%d.0-0 <%s", from[0], from[1], c.ordered())
		out.Entries = append(out.Entries, e)
	}
	return out
}

// version returns the version of the bundle: the version of the chart without a leading v.
func (c Chart) version() string { return c.parsed.String() }

// ordered returns the version without build metadata, for a skipRange.
func (c Chart) ordered() string {
	version, _, _ := strings.Cut(c.version(), "+")
	return version
}

func (c Chart) bundle() catalog.BundleData {
	own, err := json.Marshal(map[string]string{"packageName": c.Name, "version": c.version()})
	if err != nil {
		panic(fmt.Sprintf("charts: %s: %v", c.Name, err)) // strings are always JSON
	}
	m := catalog.Metadata{
		Known: true, DisplayName: c.Name, Description: catalog.ShortDescription(c.Description), KubeVersions: c.KubeVersion,
		InstallModes: []catalog.InstallMode{catalog.AllNamespaces}, Keywords: c.Keywords,
	}
	if len(c.Maintainers) > 0 {
		m.Provider = c.Maintainers[0].Name
	}
	return catalog.BundleData{
		Name: BundleName(c.Name, c.Version), Format: cmp.Or(c.Format, Helm), Templated: c.Format == "", Commit: c.Commit, Image: c.Image, Embedded: c.Image == "", Metadata: m, Pos: c.Pos,
		Properties: []catalog.Property{{Type: catalog.TypePackage, Value: own}},
	}
}
