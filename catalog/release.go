package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Release distinguishes bundles of the same version that were packaged again. It is the release
// field of the olm.package property: identifiers separated by dots, such as "2" or "1.el9". Nil
// means no release.
type Release []semver.PRVersion

// maxRelease is the maximum length of a release in bytes, as in the CRD of ClusterServiceVersions,
// which operator-registry follows (alpha/model/versionrelease.go).
const maxRelease = 20

// ParseRelease parses a release. It returns nil for an empty text.
func ParseRelease(s string) (Release, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > maxRelease {
		return nil, fmt.Errorf("release %q: %d characters exceed the limit of %d", s, len(s), maxRelease)
	}
	var out Release
	for part := range strings.SplitSeq(s, ".") {
		id, err := semver.NewPRVersion(part)
		if err != nil {
			return nil, fmt.Errorf("release %q: %w", s, err)
		}
		out = append(out, id)
	}
	return out, nil
}

// Compare orders releases of one version. No release comes first; others compare like prereleases.
func (r Release) Compare(other Release) int {
	if len(r) == 0 || len(other) == 0 {
		return min(len(r), 1) - min(len(other), 1)
	}
	return semver.Version{Pre: r}.Compare(semver.Version{Pre: other})
}

// ReleaseOf returns the release in the last valid olm.package of ps as written, or "" if there is
// none.
func ReleaseOf(ps []Property) string {
	release := ""
	for _, p := range ps {
		var v ownPackage
		if p.Type == TypePackage && json.Unmarshal(p.Value, &v) == nil {
			release = ""
			if v.Release != nil {
				release = *v.Release
			}
		}
	}
	return release
}

// LegacyRelease returns the build metadata of a version as a release, or nil if it is not a valid
// release. OLM v1 does so for bundles without an explicit release, because some registry+v1 bundles
// differ only in build metadata (operator-controller, internal/operator-controller/bundleutil).
func LegacyRelease(v Version) Release {
	r, err := ParseRelease(strings.Join(v.Build, "."))
	if err != nil {
		return nil
	}
	return r
}

// CompareBundles orders bundles by version, then by release. Invalid versions come first. An
// invalid release counts as no release.
func CompareBundles(version, release, otherVersion, otherRelease string) int {
	if c := CompareVersions(version, otherVersion); c != 0 {
		return c
	}
	a, _ := ParseRelease(release)
	b, _ := ParseRelease(otherRelease)
	return a.Compare(b)
}

// VersionText returns a version for users, followed by the release if there is one.
func VersionText(version, release string) string {
	if release == "" {
		return version
	}
	return version + " release " + release
}
