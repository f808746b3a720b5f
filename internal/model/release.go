package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
)

// Release tells bundles of one version apart: the same operator, packaged anew. It
// is what stands in the olm.package property beside the version, identifiers with
// dots between them ("2", "1.el9"). Nil is none.
type Release []semver.PRVersion

// maxRelease is the longest release, in bytes: that of the CRD of
// ClusterServiceVersions, by which operator-registry reads it
// (alpha/model/versionrelease.go).
const maxRelease = 20

// ParseRelease reads a release; an empty one is none.
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

// Compare orders releases of one version: none comes first, then they are ordered
// as prereleases are, numbers by their value and before words.
func (r Release) Compare(other Release) int {
	if len(r) == 0 || len(other) == 0 {
		return min(len(r), 1) - min(len(other), 1)
	}
	return semver.Version{Pre: r}.Compare(semver.Version{Pre: other})
}

// ReleaseOf returns the release in the last olm.package of ps as it is written, ""
// where there is none or it cannot be read.
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

// LegacyRelease returns the release that OLM v1 takes the build metadata of a
// version for, where the property says nothing of one: some bundles of registry+v1
// are told apart by it. What cannot be a release is none
// (operator-controller, internal/operator-controller/bundleutil).
func LegacyRelease(v Version) Release {
	r, err := ParseRelease(strings.Join(v.Build, "."))
	if err != nil {
		return nil
	}
	return r
}

// CompareBundles orders bundles by version, then by release, as texts; a version
// that is none comes first, a release that is none counts as absent.
func CompareBundles(version, release, otherVersion, otherRelease string) int {
	if c := CompareVersions(version, otherVersion); c != 0 {
		return c
	}
	a, _ := ParseRelease(release)
	b, _ := ParseRelease(otherRelease)
	return a.Compare(b)
}

// VersionText returns a version as people read it: with its release, where it has
// one.
func VersionText(version, release string) string {
	if release == "" {
		return version
	}
	return version + " release " + release
}
