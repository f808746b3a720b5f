package declare

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/jsonschema"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Quayside is the dialect of quayside's own Subscription.
const Quayside Dialect = "quayside.dev"

// subscriptionOwn is quayside's own Subscription.
type subscriptionOwn struct {
	APIVersion string   `json:"apiVersion" form:"required const=quayside.dev/v1alpha1" doc:"quayside.dev/v1alpha1"`
	Kind       string   `json:"kind" form:"required const=Subscription" doc:"Subscription"`
	Metadata   metadata `json:"metadata" yamlnode:"open" form:"required"`
	Spec       specOwn  `json:"spec" form:"required" doc:"Desired operator."`
}

type specOwn struct {
	Package         string          `json:"package" doc:"Name of the package. Required without bundle."`
	Channel         string          `json:"channel" doc:"Restricts versions to this channel. Default: all channels, the package's default channel first."`
	Version         string          `json:"version" doc:"Range of versions, such as \">=0.9.2 <0.10\". Default: any."`
	Catalog         string          `json:"catalog" doc:"The catalog: namespace/name of a CatalogSource, or the name of a ClusterCatalog. Default: the only catalog that has the package."`
	WatchNamespaces []string        `json:"watchNamespaces" form:"nonempty" doc:"Namespaces that the operator watches; \"*\" alone means all. Default: those of an OperatorGroup; else all namespaces if the bundle supports this, else the operator's namespace."`
	Approval        string          `json:"approval" default:"\"Automatic\"" form:"enum=Automatic|Manual" doc:"Manual: upgraded only when named on the command line."`
	Hold            string          `json:"hold" default:"\"\"" doc:"Holds the operator at its pinned version. The value is the reason."`
	Config          *configV0       `json:"config" doc:"Same fields as spec.config of OLM's Subscription."`
	Values          json.RawMessage `json:"values" doc:"Values of a chart, as in values.yaml. These values override the values in valuesFiles."`
	ValuesFiles     []string        `json:"valuesFiles" form:"nonempty" doc:"Files with values of a chart, relative to quayside.yaml. Later files override earlier ones."`
	ReleaseName     string          `json:"releaseName" doc:"Name of the release of a chart. Default: metadata.name."`
	Hops            string          `json:"hops" default:"\"minor\"" form:"enum=minor|any" doc:"Upgrades of a package without an upgrade graph: to the next minor version, or to any newer version."`
	Replaces        string          `json:"replaces" form:"pattern=^[^/]+/[^/]+$" doc:"namespace/package of the operator that this operator replaces: it provides the same APIs and is no longer declared. CRDs and custom resources are kept."`
	Only            []string        `json:"only" form:"nonempty" doc:"Names of the environments that install the operator. Default: all environments that read this declaration."`
	Bundle          string          `json:"bundle" form:"pattern=^(image|oci|dir):.+" doc:"A bundle instead of a package: image:quay.io/x/y@sha256:…, oci:layout or dir:bundle/. A directory has a bundle, a chart, or YAML files and a path that ends with PACKAGE/VERSION. metadata.namespace is then optional. Default: the namespace that the bundle suggests, or else the name of its package."`
}

func fieldsOwn() map[Field]string {
	return map[Field]string{
		FieldNamespace: "metadata.namespace", FieldPackage: "spec.package", FieldChannel: "spec.channel", FieldRange: "spec.version",
		FieldCatalog: "spec.catalog", FieldCatalogNamespace: "spec.catalog", FieldApproval: "spec.approval", FieldHold: "spec.hold",
		FieldWatch: "spec.watchNamespaces", FieldConfig: "spec.config", FieldBundle: "spec.bundle",
		FieldReplaces: "spec.replaces", FieldOnly: "spec.only", FieldValues: "spec.values", FieldValuesFiles: "spec.valuesFiles", FieldPolicy: "spec.hops",
	}
}

// Schema returns the published JSON schema of quayside's own Subscription.
func Schema() []byte {
	return jsonschema.Of("https://quayside.dev/schema/subscription.schema.json", "quayside subscription", subscriptionOwn{})
}

func (r *reader) readSubscriptionOwn(n *yamlnode.Node) {
	var o subscriptionOwn
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	if o.Metadata.Namespace != "" || o.Spec.Bundle == "" {
		c.Namespace("metadata.namespace", o.Metadata.Namespace)
	}
	c.checkRange("spec.version", o.Spec.Version)
	c.enum("spec.approval", o.Spec.Approval, string(Automatic), string(Manual))
	c.enum("spec.hops", o.Spec.Hops, "minor", "any")
	if o.Spec.ReleaseName != "" {
		c.checkRelease("spec.releaseName", o.Spec.ReleaseName)
	}
	s := Subscription{
		Dialect: Quayside, Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Package: o.Spec.Package,
		Channels: singleton(o.Spec.Channel), Range: o.Spec.Version, Catalog: c.parseCatalog(o.Spec.Catalog),
		Approval: orAutomatic(o.Spec.Approval), Policy: CatalogProvided, Hold: strings.TrimSpace(o.Spec.Hold),
		Config: c.checkConfig(n, "spec.config", o.Spec.Config), Bundle: o.Spec.Bundle, Pos: c.Whole, Fields: c.Fields,
	}
	if o.Spec.Hops == "any" {
		s.Policy = SelfCertified
	}
	s.OwnValues, s.ValuesFiles, s.Release = c.mapping("spec.values", o.Spec.Values), o.Spec.ValuesFiles, o.Spec.ReleaseName
	s.ChartValues = s.OwnValues
	c.setWatch(&s, o.Spec.WatchNamespaces)
	if s.Only = o.Spec.Only; s.Only != nil && len(s.Only) == 0 {
		c.Addf("spec.only", "empty: list environments, or omit the field")
	}
	s.Replaces = c.checkOperator(o.Spec.Replaces)
	c.checkTarget(o.Spec)
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
}

// checkTarget checks that the spec has a package or a bundle, but not both.
func (c checker) checkTarget(spec specOwn) {
	if spec.Bundle == "" {
		c.Name("spec.package", spec.Package)
		return
	}
	scheme, rest, _ := strings.Cut(spec.Bundle, ":")
	if !slices.Contains([]string{"image", "oci", "dir"}, scheme) || rest == "" {
		c.Addf("spec.bundle", "%q is not image:reference, oci:layout or dir:directory", spec.Bundle)
	}
	for _, f := range [][2]string{{"package", spec.Package}, {"channel", spec.Channel}, {"version", spec.Version}, {"catalog", spec.Catalog}} {
		if f[1] != "" {
			c.Addf("spec."+f[0], "conflicts with spec.bundle, which is an exact version")
		}
	}
}

// parseCatalog parses "namespace/name" or "name". It returns nil for an empty text.
func (c checker) parseCatalog(s string) *catalog.ID {
	if s == "" {
		return nil
	}
	id := catalog.ID{Name: s}
	if ns, name, found := strings.Cut(s, "/"); found {
		id = catalog.ID{Namespace: ns, Name: name}
		if !yamlnode.IsDNS1123Label(ns) {
			c.Addf("spec.catalog", "%q is not namespace/name", s)
			return &id
		}
	}
	if !yamlnode.IsDNS1123Subdomain(id.Name) {
		c.Addf("spec.catalog", "%q is not namespace/name", s)
	}
	return &id
}

// checkOperator checks and returns an optional "namespace/package".
func (c checker) checkOperator(s string) string {
	ns, pkg, _ := strings.Cut(s, "/")
	if s != "" && !(yamlnode.IsDNS1123Label(ns) && yamlnode.IsDNS1123Subdomain(pkg)) {
		c.Addf("spec.replaces", "%q is not namespace/package", s)
	}
	return s
}

// setWatch checks the watched namespaces, and sets them in s.
func (c checker) setWatch(s *Subscription, names []string) {
	switch {
	case names == nil:
		return
	case len(names) == 0:
		c.Addf("spec.watchNamespaces", "empty: list namespaces or \"*\" for all, or omit the field")
	case len(names) == 1 && names[0] == "*":
		s.WatchAll = true
	default:
		for i, ns := range names {
			c.Namespace(diag.Item("spec.watchNamespaces", i), ns)
		}
		s.Watch = slices.Compact(slices.Sorted(slices.Values(names)))
	}
}

// writeOwn returns d as a Subscription of quayside.
func writeOwn(d Declaration) []k8s.Object {
	spec := map[string]any{"package": d.Package}
	if d.Bundle != "" {
		spec = map[string]any{"bundle": d.Bundle}
	}
	putText(spec, "channel", d.Channel)
	putText(spec, "version", d.Version)
	putText(spec, "approval", string(d.Approval))
	if d.Catalog != (catalog.ID{}) {
		spec["catalog"] = d.Catalog.String()
	}
	if d.Watch != nil {
		spec["watchNamespaces"] = k8s.Values(d.Watch...)
	}
	if d.Only != nil {
		spec["only"] = k8s.Values(d.Only...)
	}
	putConfig(spec, "config", d.Config)
	putConfig(spec, "values", d.Values)
	if len(d.ValuesFiles) > 0 {
		spec["valuesFiles"] = k8s.Values(d.ValuesFiles...)
	}
	sub := k8s.New("quayside.dev/v1alpha1", "Subscription", d.Namespace, d.Name)
	sub["spec"] = spec
	return []k8s.Object{sub}
}
