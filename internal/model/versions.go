package model

import "github.com/Masterminds/semver/v3"

// ParseVersions returns a test for the versions that a range as a
// ClusterExtension has it admits. What is no version is in no range. The ranges of
// OLM v1 are those of Masterminds/semver, which operator-controller reads them by;
// a skipRange is another language.
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
