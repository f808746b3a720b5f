package snapshot

import (
	"encoding/json"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// Packageserver is the name of a ClusterServiceVersion that is part of OLM itself.
const Packageserver = "packageserver"

// CSV is a ClusterServiceVersion.
type CSV struct {
	*LiveObject
	CopiedFrom string // namespace of the original, for a copy; empty for an original
	Version    string
	Phase      string // such as "Succeeded"
	Message    string // explains the phase
}

// CSVs returns the ClusterServiceVersions, including copies, sorted by namespace and name. Copies
// are recognized by OLM's label.
func (s *Snapshot) CSVs() []CSV {
	return view(s, k8s.OLMGroup, "ClusterServiceVersion", func(o *LiveObject) CSV {
		var body struct {
			Spec   struct{ Version string }
			Status struct{ Phase, Message string }
		}
		o.decode(&body)
		return CSV{
			LiveObject: o, CopiedFrom: o.Labels[CopiedFrom], Version: body.Spec.Version,
			Phase: body.Status.Phase, Message: body.Status.Message,
		}
	})
}

// Subscription is a Subscription of OLM v0.
type Subscription struct {
	*LiveObject
	Package      string
	Channel      string
	Catalog      catalog.ID
	Config       map[string]any // spec.config; nil if there is none
	GeneratedBy  string         // InstallPlan for which OLM created this Subscription of a dependency; empty: created by a user
	InstalledCSV string         // ClusterServiceVersion, which may be missing in the cluster
	CurrentCSV   string         // same as InstalledCSV unless an upgrade is pending
	State        string         // such as "AtLatestKnown"
}

// Subscriptions returns the Subscriptions, sorted by namespace and name.
func (s *Snapshot) Subscriptions() []Subscription {
	return view(s, k8s.OLMGroup, "Subscription", func(o *LiveObject) Subscription {
		var body struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Name, Channel, Source, SourceNamespace string
				Config                                 json.RawMessage
			}
			Status struct {
				InstalledCSV, CurrentCSV, State string
			}
		}
		o.decode(&body)
		sub := Subscription{
			LiveObject: o, Package: body.Spec.Name, Channel: body.Spec.Channel,
			Catalog:      catalog.ID{Namespace: body.Spec.SourceNamespace, Name: body.Spec.Source},
			Config:       decodeMapping(body.Spec.Config),
			InstalledCSV: body.Status.InstalledCSV, CurrentCSV: body.Status.CurrentCSV, State: body.Status.State,
		}
		for _, key := range []string{"olm.generated-by", "operatorframework.io/generated-by"} {
			if by := body.Metadata.Annotations[key]; by != "" {
				sub.GeneratedBy = by
			}
		}
		return sub
	})
}

// OperatorGroup is an OperatorGroup of OLM v0.
type OperatorGroup struct {
	*LiveObject
	Targets    []string       // spec.targetNamespaces
	Selector   map[string]any // spec.selector; nil if there is none
	Namespaces []string       // status.namespaces, sorted; a single empty string: all namespaces
}

// OperatorGroups returns the OperatorGroups, sorted by namespace and name.
func (s *Snapshot) OperatorGroups() []OperatorGroup {
	return view(s, k8s.OLMGroup, "OperatorGroup", func(o *LiveObject) OperatorGroup {
		var body struct {
			Spec struct {
				TargetNamespaces []string
				Selector         json.RawMessage
			}
			Status struct{ Namespaces []string }
		}
		o.decode(&body)
		slices.Sort(body.Status.Namespaces)
		return OperatorGroup{
			LiveObject: o, Targets: body.Spec.TargetNamespaces, Selector: decodeMapping(body.Spec.Selector),
			Namespaces: slices.Compact(body.Status.Namespaces),
		}
	})
}

// InstallPlan is an InstallPlan of OLM v0.
type InstallPlan struct {
	*LiveObject
	Phase   string // such as "Complete"
	CSVs    []string
	Lookups []Lookup
	Steps   []Step
}

// Lookup is an entry of status.bundleLookups: a bundle that OLM unpacked for the InstallPlan.
type Lookup struct {
	CSV     string // field identifier: name of the ClusterServiceVersion
	Image   string // field path: bundle image
	Catalog catalog.ID
}

// Step is an object that an InstallPlan created or found. OLM does not record the namespace of the object. A
// namespaced object is in the namespace of the InstallPlan.
type Step struct {
	CSV                        string // ClusterServiceVersion that owns the object
	Group, Version, Kind, Name string
}

// InstallPlans returns the InstallPlans, sorted by namespace and name.
func (s *Snapshot) InstallPlans() []InstallPlan {
	return view(s, k8s.OLMGroup, "InstallPlan", func(o *LiveObject) InstallPlan {
		var body struct {
			Spec struct {
				ClusterServiceVersionNames []string
			}
			Status struct {
				Phase         string
				BundleLookups []struct {
					Identifier, Path string
					CatalogSourceRef catalog.ID
				}
				Plan []struct {
					Resolving string
					Resource  struct{ Group, Version, Kind, Name string }
				}
			}
		}
		o.decode(&body)
		p := InstallPlan{LiveObject: o, Phase: body.Status.Phase, CSVs: body.Spec.ClusterServiceVersionNames}
		for _, l := range body.Status.BundleLookups {
			p.Lookups = append(p.Lookups, Lookup{CSV: l.Identifier, Image: l.Path, Catalog: l.CatalogSourceRef})
		}
		for _, st := range body.Status.Plan {
			r := st.Resource
			p.Steps = append(p.Steps, Step{CSV: st.Resolving, Group: r.Group, Version: r.Version, Kind: r.Kind, Name: r.Name})
		}
		return p
	})
}

// CatalogSource is a CatalogSource of OLM v0.
type CatalogSource struct {
	*LiveObject
	Image, Address string
	Priority       int32
}

// CatalogSources returns the CatalogSources, sorted by namespace and name.
func (s *Snapshot) CatalogSources() []CatalogSource {
	return view(s, k8s.OLMGroup, "CatalogSource", func(o *LiveObject) CatalogSource {
		var body struct {
			Spec struct {
				Image, Address string
				Priority       int32
			}
		}
		o.decode(&body)
		return CatalogSource{LiveObject: o, Image: body.Spec.Image, Address: body.Spec.Address, Priority: body.Spec.Priority}
	})
}

// ClusterExtension is a ClusterExtension of OLM v1.
type ClusterExtension struct {
	*LiveObject
	InstallNamespace string
	Package          string
	Bundle           string // installed bundle; empty: none
	Progress         string // reason of the condition Progressing: "Succeeded", "RollingOut", "Retrying"
	Message          string // message of the condition Progressing
}

// ClusterExtensions returns the ClusterExtensions, sorted by name.
func (s *Snapshot) ClusterExtensions() []ClusterExtension {
	return view(s, k8s.OLMv1Group, "ClusterExtension", func(o *LiveObject) ClusterExtension {
		var body struct {
			Spec struct {
				Namespace string
				Source    struct{ Catalog struct{ PackageName string } }
			}
			Status struct {
				Install    struct{ Bundle struct{ Name string } }
				Conditions []struct{ Type, Reason, Message string }
			}
		}
		o.decode(&body)
		e := ClusterExtension{
			LiveObject: o, InstallNamespace: body.Spec.Namespace, Package: body.Spec.Source.Catalog.PackageName,
			Bundle: body.Status.Install.Bundle.Name,
		}
		for _, c := range body.Status.Conditions {
			if c.Type == "Progressing" {
				e.Progress, e.Message = c.Reason, c.Message
			}
		}
		return e
	})
}

// IsOwnerInOLMv1 reports whether a kind is one that OLM v1 makes the owner of the objects it installs:
// ClusterExtensions and, in newer versions of OLM v1, their revisions.
func IsOwnerInOLMv1(apiVersion, kind string) bool {
	return k8s.Group(apiVersion) == k8s.OLMv1Group && slices.Contains([]string{"ClusterExtension", "ClusterObjectSet", "ClusterExtensionRevision"}, kind)
}

// OwnerNameV1 is the label that OLM v1 sets on every object that it installs. Its value is the name
// of the ClusterExtension.
const OwnerNameV1 = k8s.OLMv1Group + "/owner-name"

// view converts all objects of a kind with convert.
func view[T any](s *Snapshot, group, kind string, convert func(*LiveObject) T) []T {
	var out []T
	for _, o := range s.Kind(group, kind) {
		out = append(out, convert(o))
	}
	return out
}

// decodeMapping decodes a JSON object. It returns nil if raw is not an object.
func decodeMapping(raw []byte) map[string]any {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return decodeObject("a field", raw)
}
