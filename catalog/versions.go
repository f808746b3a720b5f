package catalog

import "github.com/Masterminds/semver/v3"

// ParseVersions parses the version range of a ClusterExtension, in the syntax of
// Masterminds/semver. (A skipRange has another syntax: see ParseRange.) The result reports whether
// a version is in the range; it is false for invalid versions.
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
