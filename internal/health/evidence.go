package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/health/gate"
)

// Evidence returns an observation of the cluster of the summary, without data of an operator.
func (s *Summary) Evidence() gate.Observation {
	return gate.Observation{Environment: s.Environment, Cluster: s.Cluster, ClusterUID: s.ClusterUID, At: s.At, Unsigned: s.Unsigned}
}

// Judge sets s.Problem to the reason why rule rejects the summary, or to "" if rule accepts it. A summary
// of another environment, or of a cluster that is not in clusters, is rejected.
func (s *Summary) Judge(rule gate.Criteria, environment string, clusters []string, now time.Time) {
	e := s.Evidence()
	cause, note := rule.Problem(environment, clusters, e, now)
	for _, o := range s.Operators {
		if e.At = o.At; s.Combined && cause == "" {
			cause, note = rule.Problem(environment, clusters, e, now)
		}
	}
	if s.Problem = ""; cause != "" {
		s.Problem = gate.Reason{Cause: cause, Clusters: []gate.ClusterNote{{Name: cmp.Or(s.Cluster, "the cluster"), Note: note}}}.String()
	}
}

// Observations returns the observations of all operators for the gate. If a summary lacks an operator that
// another summary of the same cluster has, the operator gets an observation with Absent. The result has the
// order of the summaries, and within a summary it is sorted by operator name.
func Observations(list []*Summary) []gate.Observation {
	type cluster struct{ environment, name string }
	operators := map[cluster]map[string]bool{}
	for _, s := range list {
		c := cluster{s.Environment, s.Cluster}
		if operators[c] == nil {
			operators[c] = map[string]bool{}
		}
		for _, o := range s.Operators {
			operators[c][o.Key()] = true
		}
	}
	var out []gate.Observation
	for _, s := range list {
		for _, name := range slices.Sorted(maps.Keys(operators[cluster{s.Environment, s.Cluster}])) {
			o := s.Evidence()
			o.Operator, o.Absent = name, true
			namespace, pkg, _ := strings.Cut(name, "/")
			if h, ok := s.Operator(namespace, pkg); ok {
				o.Absent = false
				if s.Combined {
					o.At = h.At
				}
				o.Version, o.Bundle, o.Checksum = h.Version, string(h.Bundle), string(h.Pin)
				o.Healthy, o.Message = h.State == StateReady, strings.TrimSuffix(string(h.State)+": "+h.Message, ": ")
				o.Upgradeable, o.UpgradeMessage = string(h.Upgradeable), h.UpgradeMessage
				if o.Healthy {
					o.Since = h.ReadySince
				}
			}
			out = append(out, o)
		}
	}
	return out
}
