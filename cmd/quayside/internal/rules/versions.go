package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
)

// clusterVersion is a version of a cluster in the settings.
type clusterVersion struct {
	field, value string
	openShift    bool
	major, minor int
}

func (s *State) clusterVersions() []clusterVersion {
	w := s.Settings
	all := []clusterVersion{{field: "spec.kubernetesVersion", value: w.KubernetesVersion}, {field: "spec.openshiftVersion", value: w.OpenShiftVersion, openShift: true}}
	for i, c := range w.Clusters {
		all = append(all, clusterVersion{field: diag.Item("spec.clusters", i) + ".kubernetesVersion", value: c.KubernetesVersion})
	}
	var out []clusterVersion
	for _, v := range all {
		parts := strings.SplitN(v.value+"..", ".", 3)
		var err1, err2 error
		v.major, err1 = strconv.Atoi(parts[0])
		v.minor, err2 = strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil {
			out = append(out, v)
		}
	}
	return out
}

// Limits for the versions of clusters. Kubernetes 1.34 and OpenShift 4.20 were released in 2025. There
// are three releases a year. The limits allow for more releases a year, and for planned releases.
const (
	releaseYear      = 2025
	kubernetesMinor  = 34
	openShiftMinor   = 20
	releasesPerYear  = 4
	plannedReleases  = 4
	oldestKubernetes = 16 // introduced apiextensions.k8s.io/v1 for CRDs
	openShiftMajors  = 5
)

// checkFutureVersions returns an error for each version of a cluster that cannot exist yet.
func checkFutureVersions(s *State) (Findings, error) {
	day, err := time.Parse(time.DateOnly, s.Today)
	if err != nil {
		return nil, nil //nolint:nilerr // without a day, every version may exist
	}
	more := (day.Year()-releaseYear)*releasesPerYear + plannedReleases
	var faults diag.List
	for _, v := range s.clusterVersions() {
		product, exists := "Kubernetes", v.major == 1 && v.minor <= kubernetesMinor+more
		if v.openShift {
			product, exists = "OpenShift", v.major <= openShiftMajors && v.minor <= openShiftMinor+more
		}
		if !exists {
			at := s.Settings.At(v.field)
			faults.Add(at, diag.Hintf(at, "set the version of the cluster, as 'kubectl version' prints it", "%s: %s %q cannot exist yet", v.field, product, v.value))
		}
	}
	return errorsOf(faults), nil
}

// checkOldVersions returns a warning for each version of Kubernetes that lacks APIs of the rendered
// manifests.
func checkOldVersions(s *State) (Findings, error) {
	var out []diag.Warning
	for _, v := range s.clusterVersions() {
		if v.openShift || v.major != 1 || v.minor >= oldestKubernetes {
			continue
		}
		msg := fmt.Sprintf("%s: Kubernetes %q is older than 1.%d, the first version with apiextensions.k8s.io/v1, which all CustomResourceDefinitions use", v.field, v.value, oldestKubernetes)
		if minor, patch, has := strings.Cut(strings.TrimPrefix(v.value, "1."), "."); has {
			msg += fmt.Sprintf(" (did you mean \"1.%s%s\"?)", minor, patch)
		}
		out = append(out, diag.Warning{Pos: s.Settings.At(v.field), Code: "old-version", Msg: msg})
	}
	return warningsOf(s.waive(out)), nil
}
