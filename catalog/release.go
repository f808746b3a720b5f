package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Release distinguishes bundles of the same version that were rebuilt. It is the release field of
// the olm.package property: identifiers separated by dots, such as "2" or "1.el9". Nil means no
// release.
type Release []semver.PRVersion

// maxRelease is the maximum length of a release in bytes, as in the CRD of ClusterServiceVersions and in
// operator-registry (alpha/model/versionrelease.go).
const maxRelease = 20

// ParseRelease parses a release. For an empty string it returns nil and no error.
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

// Compare orders the releases of one version. A missing release sorts first. Other releases compare
// like semver prereleases.
func (r Release) Compare(other Release) int {
	if len(r) == 0 || len(other) == 0 {
		return min(len(r), 1) - min(len(other), 1)
	}
	return semver.Version{Pre: r}.Compare(semver.Version{Pre: other})
}

// ReleaseOf returns the release in the last valid olm.package property of ps, unparsed, or "" if
// there is none.
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

// LegacyRelease returns the build metadata of a version as a release, or nil if the metadata is not
// a valid release. OLM v1 does the same for bundles without an explicit release, because some
// registry+v1 bundles differ only in build metadata (operator-controller,
// internal/operator-controller/bundleutil).
func LegacyRelease(v Version) Release {
	r, err := ParseRelease(strings.Join(v.Build, "."))
	if err != nil {
		return nil
	}
	return r
}

// CompareBundles compares two bundles by version, then by release. Invalid versions sort first. An
// invalid release counts as no release.
func CompareBundles(version, release, otherVersion, otherRelease string) int {
	if c := CompareVersions(version, otherVersion); c != 0 {
		return c
	}
	a, _ := ParseRelease(release)
	b, _ := ParseRelease(otherRelease)
	return a.Compare(b)
}

// VersionText returns a version and its release for display. An empty release is omitted.
func VersionText(version, release string) string {
	if release == "" {
		return version
	}
	return version + " release " + release
}
