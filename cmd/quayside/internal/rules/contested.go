package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/profile"
)

// contestedFields returns a warning for each field that overlays set, and that either a controller of the
// cluster also writes or the API server does not store. The GitOps tool would set such a field repeatedly. If
// the workspace has no GitOps tool, it returns nil.
func (s *State) contestedFields(types *admit.Types, cluster string, patch fleet.Patch) (Findings, error) {
	tool := s.tool()
	if tool == "" {
		return nil, nil
	}
	var out Findings
	warn := func(o k8s.Object, field, why, hint string) {
		out = append(out, Finding{
			Severity: Warning, Code: "contested-field", Subject: o.Key().String(),
			Msg: fmt.Sprintf("%s after overlays: %s: %s", o.Key(), field, why), Hint: hint,
		})
	}
	keys := slices.SortedFunc(maps.Keys(patch), k8s.Key.Compare)
	scaling := false
	for _, key := range keys {
		o := patch[key]
		if o == nil {
			continue
		}
		if g := s.Settings.GitOps; needsServerSideApply(s.Settings.Tool().Annotate(o, profile.ApplyPosition{})) && !needsServerSideApply(o) && (g == nil || !slices.Contains(g.SyncPolicy.SyncOptions, serverSideApply)) {
			warn(o, "metadata.annotations", fmt.Sprintf("the object may be too large for kubectl's last-applied annotation, which %s uses", tool), "add the annotation argocd.argoproj.io/sync-options: "+serverSideApply)
		}
		switch {
		case o.Is(k8s.RBACGroup, "ClusterRole") && len(k8s.Map(o, "aggregationRule")) > 0 && k8s.At(o, "rules") != nil:
			warn(o, "rules", fmt.Sprintf("the role has an aggregationRule, so a controller of Kubernetes writes its rules: %s would overwrite them at each sync", tool), "remove rules")
		case k8s.IsCRD(o) && s.Settings.Profile == profile.ArgoCD:
			for _, field := range droppedFields(types, o) {
				warn(o, field, fmt.Sprintf("the API server does not store this value: %s would report the object as out of sync", tool), "remove the field")
			}
		case o.Is("autoscaling", "HorizontalPodAutoscaler"), k8s.At(o, "spec", "replicas") != nil:
			scaling = true
		}
	}
	if !scaling {
		return out, nil
	}
	all, err := s.objectsAfter(cluster, patch)
	if err != nil {
		return nil, err
	}
	scalers := slices.DeleteFunc(slices.Clone(all), func(o k8s.Object) bool { return !o.Is("autoscaling", "HorizontalPodAutoscaler") })
	for _, o := range all {
		if k8s.At(o, "spec", "replicas") != nil && slices.ContainsFunc(scalers, func(h k8s.Object) bool { return scales(h, o) }) {
			warn(o, "spec.replicas", fmt.Sprintf("a HorizontalPodAutoscaler writes this field: %s would overwrite it at each sync", tool), "remove the field: {op: remove, path: /spec/replicas}")
		}
	}
	return out, nil
}

// serverSideApply is the sync option for server-side apply in Argo CD. Objects that are applied on the server
// need no annotation with their whole content.
const serverSideApply = "ServerSideApply=true"

func needsServerSideApply(o k8s.Object) bool {
	return strings.Contains(k8s.Text(o, "metadata", "annotations", "argocd.argoproj.io/sync-options"), serverSideApply)
}

// objectsAfter returns the objects of a cluster after its overlays are applied.
func (s *State) objectsAfter(cluster string, patch fleet.Patch) ([]k8s.Object, error) {
	operators, all, err := s.Rendered.ClusterObjects(cluster)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	for _, operator := range operators {
		all = append(all, operator.Objects...)
	}
	known := map[k8s.Key]bool{}
	for _, o := range all {
		known[o.Key()] = true
	}
	all = patch.Apply(all)
	for _, key := range slices.SortedFunc(maps.Keys(patch), k8s.Key.Compare) {
		if o := patch[key]; o != nil && !known[key] {
			all = append(all, o)
		}
	}
	return all, nil
}

// scales reports whether a HorizontalPodAutoscaler scales a workload.
func scales(h, o k8s.Object) bool {
	target := k8s.Map(h, "spec", "scaleTargetRef")
	return h.Namespace() == o.Namespace() && k8s.Text(target, "kind") == o.Kind() && k8s.Text(target, "name") == o.Name()
}

// droppedFields returns the fields of a CRD that the API server does not store, sorted.
func droppedFields(types *admit.Types, crd k8s.Object) []string {
	var out []string
	var compare func(at string, written, stored any)
	compare = func(at string, written, stored any) {
		m, isMap := written.(map[string]any)
		s, _ := stored.(map[string]any)
		if !isMap {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			field := at + name
			if _, kept := s[name]; !kept {
				out = append(out, field)
			} else {
				compare(field+".", m[name], s[name])
			}
		}
	}
	compare("", map[string]any(crd), map[string]any(types.Canonical(crd)))
	return out
}
