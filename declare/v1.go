package declare

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// V1 is the dialect of OLM v1's ClusterExtension.
const V1 Dialect = k8s.OLMv1Group

type specV1 struct {
	Namespace      string `json:"namespace"`
	ServiceAccount struct {
		Name string `json:"name"`
	} `json:"serviceAccount"`
	Source struct {
		SourceType string         `json:"sourceType"`
		Catalog    *catalogFilter `json:"catalog"`
		OCIImage   *struct {
			Ref string `json:"ref"`
		} `json:"ociImage"`
	} `json:"source"`
	Install *struct {
		Preflight struct {
			CRDUpgradeSafety struct {
				Enforcement string `json:"enforcement"`
			} `json:"crdUpgradeSafety"`
		} `json:"preflight"`
	} `json:"install"`
	Config *struct {
		ConfigType string        `json:"configType"`
		Inline     *inlineConfig `json:"inline"`
	} `json:"config"`
	ProgressDeadlineMinutes *int32 `json:"progressDeadlineMinutes"`
}

type statusV1 struct {
	Install struct {
		Bundle struct {
			Name string `json:"name"`
		} `json:"bundle"`
	} `json:"install"`
}

type catalogFilter struct {
	PackageName             string         `json:"packageName"`
	Version                 string         `json:"version"`
	Channels                []string       `json:"channels"`
	Selector                *labelSelector `json:"selector"`
	UpgradeConstraintPolicy string         `json:"upgradeConstraintPolicy"`
}

// inlineConfig is the inline configuration of a registry+v1 bundle.
type inlineConfig struct {
	WatchNamespace   string    `json:"watchNamespace"`
	DeploymentConfig *configV0 `json:"deploymentConfig"`
}

func fieldsV1() map[Field]string {
	return map[Field]string{
		FieldNamespace: "spec.namespace", FieldPackage: "spec.source.catalog.packageName", FieldChannel: "spec.source.catalog.channels[0]",
		FieldRange: "spec.source.catalog.version", FieldCatalog: "spec.source.catalog.selector", FieldPolicy: "spec.source.catalog.upgradeConstraintPolicy",
		FieldWatch: "spec.config.inline.watchNamespace", FieldConfig: "spec.config.inline.deploymentConfig",
		FieldBundle: "spec.source.ociImage.ref", FieldInstalled: "status.install.bundle.name",
	}
}

func (r *reader) readClusterExtension(n *yamlnode.Node) {
	var o typedObject[specV1, statusV1]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	if _, isSet := c.Fields["spec.namespace"]; isSet {
		c.Namespace("spec.namespace", o.Spec.Namespace)
	}
	s := Subscription{
		Dialect: V1, Name: o.Metadata.Name, Namespace: o.Spec.Namespace, Approval: Automatic, Policy: CatalogProvided,
		InstalledCSV: o.Status.Install.Bundle.Name, Pos: c.Whole, Fields: c.Fields,
	}
	c.oneOf("spec.source.sourceType", o.Spec.Source.SourceType, "Catalog", "OCIImage")
	switch src := o.Spec.Source; src.SourceType {
	case "Catalog":
		c.readFilter(&s, src.Catalog)
		if src.OCIImage != nil {
			c.Addf("spec.source.ociImage", "only with sourceType OCIImage")
		}
	case "OCIImage":
		if src.OCIImage == nil || src.OCIImage.Ref == "" {
			c.Addf("spec.source.ociImage.ref", "missing")
		} else {
			s.Bundle = "image:" + src.OCIImage.Ref
		}
		if src.Catalog != nil {
			c.Addf("spec.source.catalog", "only with sourceType Catalog")
		}
	}
	if i := o.Spec.Install; i != nil {
		c.oneOf("spec.install.preflight.crdUpgradeSafety.enforcement", i.Preflight.CRDUpgradeSafety.Enforcement, "None", "Strict")
	}
	if m := o.Spec.ProgressDeadlineMinutes; m != nil && (*m < 10 || *m > 720) {
		c.Addf("spec.progressDeadlineMinutes", "%d is not between 10 and 720", *m)
	}
	c.readConfig(&s, n, o.Spec)
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
}

// readFilter checks a catalog filter, and sets the fields of s from it.
func (c checker) readFilter(s *Subscription, f *catalogFilter) {
	if f == nil {
		c.Addf("spec.source.catalog", "missing")
		return
	}
	c.Name("spec.source.catalog.packageName", f.PackageName)
	c.checkRange("spec.source.catalog.version", f.Version)
	c.enum("spec.source.catalog.upgradeConstraintPolicy", f.UpgradeConstraintPolicy, string(CatalogProvided), string(SelfCertified))
	for i, ch := range f.Channels {
		if !yamlnode.IsDNS1123Subdomain(ch) {
			c.Addf(diag.Item("spec.source.catalog.channels", i), "%q is not a valid channel name in OLM v1 (lower case letters, digits, - and .)", ch)
		}
	}
	s.Package, s.Range, s.Channels, s.Selector = f.PackageName, f.Version, f.Channels, c.checkSelector("spec.source.catalog.selector", f.Selector)
	if f.UpgradeConstraintPolicy != "" {
		s.Policy = UpgradePolicy(f.UpgradeConstraintPolicy)
	}
}

// readConfig checks spec.config, and sets the fields of s from it. It accepts the fields of
// operator-controller's schema for registry+v1 bundles (registryv1bundleconfig.json): the watched
// namespace, and the fields of SubscriptionConfig except selector.
func (c checker) readConfig(s *Subscription, n *yamlnode.Node, spec specV1) {
	cfg := spec.Config
	if cfg == nil {
		return
	}
	c.oneOf("spec.config.configType", cfg.ConfigType, "Inline")
	if cfg.Inline == nil {
		c.Addf("spec.config.inline", "missing")
		return
	}
	if len(childNode(n, "spec.config.inline").Content) == 0 {
		c.Addf("spec.config.inline", "empty: set a field, or omit spec.config")
	}
	if d := cfg.Inline.DeploymentConfig; d != nil && d.Selector != nil {
		c.Addf("spec.config.inline.deploymentConfig.selector", "not supported by OLM v1: omit the field, which never had an effect")
	}
	if w := cfg.Inline.WatchNamespace; w != "" {
		c.Namespace("spec.config.inline.watchNamespace", w)
		s.Watch = []string{w}
	}
	s.Config = c.checkConfig(n, "spec.config.inline.deploymentConfig", cfg.Inline.DeploymentConfig)
}

type specClusterCatalog struct {
	Source struct {
		Type  string `json:"type"`
		Image struct {
			Ref                 string `json:"ref"`
			PollIntervalMinutes *int64 `json:"pollIntervalMinutes"`
		} `json:"image"`
	} `json:"source"`
	Priority         int32  `json:"priority"`
	AvailabilityMode string `json:"availabilityMode"`
}

func (r *reader) readClusterCatalog(n *yamlnode.Node) {
	var o typedObject[specClusterCatalog, json.RawMessage]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.oneOf("spec.source.type", o.Spec.Source.Type, "Image")
	c.enum("spec.availabilityMode", o.Spec.AvailabilityMode, "Available", "Unavailable")
	image := o.Spec.Source.Image.Ref
	c.Require("spec.source.image.ref", image)
	if poll := o.Spec.Source.Image.PollIntervalMinutes; poll != nil {
		switch {
		case *poll < 1:
			c.Addf("spec.source.image.pollIntervalMinutes", "%d is less than 1", *poll)
		case strings.Contains(image, "@"):
			c.Addf("spec.source.image.pollIntervalMinutes", "not allowed for an image with a digest, which never changes")
		}
	}
	labels := map[string]string{}
	maps.Copy(labels, o.Metadata.Labels)
	labels["olm.operatorframework.io/metadata.name"] = o.Metadata.Name // catalogd sets this label
	declare(r, &r.set.CatalogSources, CatalogSource{
		ID: catalog.ID{Name: o.Metadata.Name}, Image: image, Priority: int(o.Spec.Priority), Labels: labels,
		Disabled: o.Spec.AvailabilityMode == "Unavailable", Pos: c.Whole, Content: c.At("spec.source.image.ref"),
	})
}

// writeV1 returns d as a ClusterExtension of OLM v1.
func writeV1(d Declaration) []k8s.Object {
	filter := map[string]any{"packageName": d.Package}
	putText(filter, "version", d.Version)
	if d.Channel != "" {
		filter["channels"] = k8s.Values(d.Channel)
	}
	if d.Catalog != (catalog.ID{}) {
		filter["selector"] = map[string]any{"matchLabels": map[string]any{"olm.operatorframework.io/metadata.name": d.Catalog.Name}}
	}
	spec := map[string]any{
		"namespace": d.Namespace, "serviceAccount": map[string]any{"name": d.Name + "-installer"},
		"source": map[string]any{"sourceType": "Catalog", "catalog": filter},
	}
	inline := map[string]any{}
	if len(d.Watch) == 1 && d.Watch[0] != "*" {
		inline["watchNamespace"] = d.Watch[0]
	}
	putConfig(inline, "deploymentConfig", d.Config)
	if len(inline) > 0 {
		spec["config"] = map[string]any{"configType": "Inline", "inline": inline}
	}
	extension := k8s.New("olm.operatorframework.io/v1", "ClusterExtension", "", d.Name)
	extension["spec"] = spec
	return []k8s.Object{extension}
}
