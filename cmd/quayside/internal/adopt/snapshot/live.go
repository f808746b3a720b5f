package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// kindSelector is a kind to read from a live cluster.
type kindSelector struct {
	apiVersion, kind string
	labels           string // label selector of objects that OLM installed; empty: all
}

// snapshotKinds returns the kinds to read from every live cluster: OLM's own kinds, and kinds that OLM usually
// installs. plannedKinds returns the kinds that depend on the cluster.
func snapshotKinds() []kindSelector {
	const managed = "olm.managed=true"
	return []kindSelector{
		{"v1", "Namespace", ""},
		{k8s.OLMGroup + "/v1alpha1", "Subscription", ""},
		{k8s.OLMGroup + "/v1alpha1", "ClusterServiceVersion", ""},
		{k8s.OLMGroup + "/v1alpha1", "InstallPlan", ""},
		{k8s.OLMGroup + "/v1alpha1", "CatalogSource", ""},
		{k8s.OLMGroup + "/v1", "OperatorGroup", ""},
		{k8s.OLMGroup + "/v1", "Operator", ""},
		{k8s.OLMGroup + "/v1", "OLMConfig", ""},
		{k8s.OLMGroup + "/v2", "OperatorCondition", ""},
		{k8s.OLMv1Group + "/v1", "ClusterExtension", ""},
		{k8s.OLMv1Group + "/v1", "ClusterCatalog", ""},
		{k8s.OLMv1Group + "/v1", "ClusterExtensionRevision", ""},
		{k8s.OLMv1Group + "/v1", "ClusterObjectSet", ""},
		{"config.openshift.io/v1", "ClusterVersion", ""},
		{"v1", "ServiceAccount", ""},
		{"v1", "Service", ""},
		{"v1", "ConfigMap", managed},
		{"v1", "Secret", managed},
		{"apps/v1", "Deployment", ""},
		{"apps/v1", "ReplicaSet", ""},
		{"batch/v1", "Job", managed},
		{"policy/v1", "PodDisruptionBudget", ""},
		{"rbac.authorization.k8s.io/v1", "Role", ""},
		{"rbac.authorization.k8s.io/v1", "RoleBinding", ""},
		{"rbac.authorization.k8s.io/v1", "ClusterRole", ""},
		{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", ""},
		{"scheduling.k8s.io/v1", "PriorityClass", ""},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ""},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", ""},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", ""},
		{"apiregistration.k8s.io/v1", "APIService", ""},
	}
}

// ReadLive reads the objects of a live cluster. It omits kinds that the cluster does not serve. The result's
// field Unread contains the kinds that could not be read. The error is an error of [cluster.Client.ListAll], or
// a diag.List.
func ReadLive(ctx context.Context, c *cluster.Client, opt Selection) (*Snapshot, error) {
	b := newBuilder(opt)
	kinds := append(snapshotKinds(), opt.recordKinds()...)
	if opt.Charts {
		kinds = append(slices.DeleteFunc(kinds, func(w kindSelector) bool { return w.kind == "ConfigMap" }), chartKinds()...)
	}
	if err := b.readKinds(ctx, c, kinds); err != nil {
		return nil, err
	}
	if namespaces := b.valuesNamespaces(); opt.Charts && len(namespaces) > 0 {
		b.opt.Namespaces = namespaces
		if err := b.readKinds(ctx, c, []kindSelector{{"v1", "ConfigMap", ""}}); err != nil {
			return nil, err
		}
		b.opt.Namespaces = opt.Namespaces
	}
	if err := b.readKinds(ctx, c, b.plannedKinds()); err != nil {
		return nil, err
	}
	s, err := b.snapshot()
	if err != nil {
		return nil, err
	}
	s.Version, err = c.Version(ctx)
	return s, err
}

// chartKinds returns the kinds with which Flux and Argo CD install charts. Of several versions, the last is kept.
func chartKinds() []kindSelector {
	return append(fluxReleaseKinds(),
		kindSelector{FluxSources + "/v1beta2", "HelmRepository", ""}, kindSelector{FluxSources + "/v1", "HelmRepository", ""},
		kindSelector{FluxSources + "/v1beta2", "OCIRepository", ""}, kindSelector{FluxSources + "/v1", "OCIRepository", ""},
		kindSelector{ArgoGroup + "/v1alpha1", "Application", ""})
}

// fluxReleaseKinds returns all API versions of HelmReleases. Of several versions, the last is kept.
func fluxReleaseKinds() []kindSelector {
	return []kindSelector{{FluxGroup + "/v2beta1", "HelmRelease", ""}, {FluxGroup + "/v2beta2", "HelmRelease", ""}, {FluxGroup + "/v2", "HelmRelease", ""}}
}

// valuesNamespaces returns the namespaces of the HelmReleases with values in ConfigMaps, sorted.
func (b *builder) valuesNamespaces() []string {
	var out []string
	for key, o := range b.byKey {
		if key.Group != FluxGroup || key.Kind != "HelmRelease" {
			continue
		}
		for _, from := range k8s.Items(o.Body(), "spec", "valuesFrom") {
			if k8s.Text(from, "kind") == "ConfigMap" {
				out = append(out, key.Namespace)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ListedKind is a kind that ReadLive lists in a cluster.
type ListedKind struct{ Group, Kind string }

// IsConfidential reports whether ReadLive lists the kind only in Selection.Namespaces, if these are
// set.
func (k ListedKind) IsConfidential() bool {
	return k.Group == "" && (k.Kind == "Secret" || k.Kind == "ConfigMap")
}

// ListedKinds returns the kinds that ReadLive would list in the cluster of this snapshot.
func (s *Snapshot) ListedKinds() []ListedKind {
	var out []ListedKind
	for _, w := range slices.Concat(snapshotKinds(), s.plannedKinds()) {
		out = append(out, ListedKind{k8s.Group(w.apiVersion), w.kind})
	}
	return out
}

// extensionKinds returns the kinds to read if there are ClusterExtensions. These are kinds that only OLM v1
// installs, ConfigMaps and Secrets with OLM v1's label, and OLM v1's release Secrets, which have another label.
func extensionKinds() []kindSelector {
	out := []kindSelector{{"v1", "Secret", "owner=operator-controller"}}
	for apiVersion, kinds := range map[string]string{
		"v1":                       "ConfigMap Secret",
		"autoscaling.k8s.io/v1":    "VerticalPodAutoscaler",
		"cert-manager.io/v1":       "Certificate Issuer",
		"console.openshift.io/v1":  "ConsoleCLIDownload ConsoleLink ConsolePlugin ConsoleQuickStart ConsoleYAMLSample",
		"monitoring.coreos.com/v1": "PodMonitor PrometheusRule ServiceMonitor",
		"networking.k8s.io/v1":     "NetworkPolicy",
	} {
		for _, kind := range strings.Fields(kinds) {
			out = append(out, kindSelector{apiVersion, kind, OwnerNameV1})
		}
	}
	slices.SortFunc(out, func(x, y kindSelector) int {
		return cmp.Or(strings.Compare(x.apiVersion, y.apiVersion), strings.Compare(x.kind, y.kind), strings.Compare(x.labels, y.labels))
	})
	return out
}

// plannedKinds returns the kinds in InstallPlans that snapshotKinds lacks, and the kinds of Helm releases. If
// there are ClusterExtensions, it also returns extensionKinds.
func (b *builder) plannedKinds() []kindSelector {
	s := &Snapshot{byKey: b.byKey}
	for _, o := range b.byKey {
		s.objects = append(s.objects, o)
	}
	slices.SortFunc(s.objects, func(x, y *LiveObject) int { return x.Compare(y.Key) })
	return s.plannedKinds()
}

func (s *Snapshot) plannedKinds() []kindSelector {
	known := snapshotKinds()
	var out []kindSelector
	if len(s.Kind(k8s.OLMv1Group, "ClusterExtension")) > 0 {
		out = extensionKinds()
		known = append(known, out...)
	}
	for _, p := range s.InstallPlans() {
		for _, step := range p.Steps {
			w := kindSelector{apiVersion: strings.TrimPrefix(step.Group+"/"+step.Version, "/"), kind: step.Kind}
			same := func(k kindSelector) bool { return k.kind == w.kind && k8s.Group(k.apiVersion) == step.Group }
			if step.Kind != "" && !slices.ContainsFunc(known, same) {
				known, out = append(known, w), append(out, w)
			}
		}
	}
	return append(out, s.releaseKinds()...)
}

// readKinds reads all objects of the kinds, except ignored kinds.
func (b *builder) readKinds(ctx context.Context, c *cluster.Client, kinds []kindSelector) error {
	var opts []cluster.ListOptions
	for _, w := range kinds {
		if b.isIgnored(k8s.Group(w.apiVersion), w.kind) {
			continue
		}
		namespaces := []string{""}
		if (ListedKind{k8s.Group(w.apiVersion), w.kind}).IsConfidential() && len(b.opt.Namespaces) > 0 {
			namespaces = b.opt.Namespaces
		}
		for _, namespace := range namespaces {
			opts = append(opts, cluster.ListOptions{APIVersion: w.apiVersion, Kind: w.kind, Namespace: namespace, Labels: w.labels, WithContent: true, ManagedFields: b.opt.ManagedFields})
		}
	}
	found, err := c.ListAll(ctx, opts)
	if err != nil {
		return err
	}
	for i, f := range found {
		if f.Reason != "" && f.Reason != v1alpha1.ReasonNoKind {
			b.unread = append(b.unread, Unread{APIVersion: opts[i].APIVersion, Kind: opts[i].Kind, Reason: f.Message})
		}
		for _, o := range f.Objects {
			raw, err := json.Marshal(o)
			if err != nil {
				return err
			}
			b.addSingle(raw, diag.Pos{})
		}
		found[i] = cluster.ListResult{}
	}
	return nil
}
