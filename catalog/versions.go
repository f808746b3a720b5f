package catalog

import "github.com/Masterminds/semver/v3"

// ParseVersions parses the version range of a ClusterExtension. The returned predicate is false for
// invalid versions. OLM v1 uses the range syntax of Masterminds/semver, which differs from that of
// a skipRange.
func ParseVersions(within string) (func(version string) bool, error) {
	in, err := semver.NewConstraint(within)
	if err != nil {
		return nil, err
	}
	return func(version string) bool {
		v, err := semver.NewVersion(version)
		return err == nil && in.Check(v)
	}, nil
}
