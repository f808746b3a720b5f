package model

import "github.com/Masterminds/semver/v3"

// ParseVersions returns a predicate for the versions in a range of a ClusterExtension. It returns
// false for invalid versions. OLM v1 defines these ranges by Masterminds/semver; a skipRange has
// another syntax.
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
