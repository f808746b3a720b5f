package bundle

import (
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
)

// CSV contains the fields of a ClusterServiceVersion that rendering, catalog building and
// validation use.
type CSV struct {
	File string // "manifests/etcdoperator.v0.9.4.clusterserviceversion.yaml"

	Name           string // "etcdoperator.v0.9.4"
	Annotations    map[string]string
	Version        string // "0.9.4"; empty if missing
	Release        string // "2"; distinguishes rebuilt bundles of the same version; usually empty
	MinKubeVersion string
	Replaces       string
	Skips          []string
	DisplayName    string
	Description    string
	Maturity       string
	Provider       string
	Keywords       []string
	Links          []Link       // spec.links, in file order
	Maintainers    []Maintainer // spec.maintainers, in file order
	Icon           Icon         // first of spec.icon; zero if there is none

	Modes        []catalog.InstallMode // supported modes, in the order of catalog.InstallModes; never nil
	ModesListed  []string              // types of all entries of spec.installModes, supported or not
	Strategy     string                // spec.install.strategy
	Deployments  []Deployment
	Permissions  []Permission // spec.install.spec.permissions: apply in the watched namespaces
	ClusterPerms []Permission // spec.install.spec.clusterPermissions: apply in all namespaces
	Webhooks     []Webhook

	OwnedCRDs     []API
	RequiredCRDs  []API
	OwnedAPIs     []API // owned API services
	RequiredAPIs  []API
	NativeAPIs    []catalog.GVK
	RelatedImages []catalog.RelatedImage

	unused []string // fields that neither OLM nor quayside uses: "spec.labels"
}

// Link is one entry of spec.links.
type Link struct{ Name, URL string }

// Maintainer is one entry of spec.maintainers.
type Maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

// Icon is a picture of the operator.
type Icon struct {
	MediaType string // such as "image/svg+xml"; unchecked
	Base64    string // the data, unchecked
}

// Deployment is one entry of spec.install.spec.deployments.
type Deployment struct {
	Name   string
	Labels map[string]string // field "label" of the entry: labels of the Deployment
	Spec   map[string]any    // DeploymentSpec
	Field  string            // path of the entry for messages: "spec.install.spec.deployments[0]"
}

// Permission is one entry of permissions or clusterPermissions.
type Permission struct {
	ServiceAccount string // as in the file; empty means "default"
	Rules          []any
	Field          string
}

// Account returns the name of the ServiceAccount, or "default" if the entry has none.
func (p Permission) Account() string {
	if p.ServiceAccount == "" {
		return "default"
	}
	return p.ServiceAccount
}

// API is an owned or required CRD or API service.
type API struct {
	Name           string // "etcdclusters.etcd.database.coreos.com"; for an API service, the plural: "etcdclusters"
	Group          string // only for an API service
	Version, Kind  string
	DeploymentName string // only for an API service
	ContainerPort  int64  // only for an API service; 0 if missing
	Field          string
}

// Webhook types.
const (
	Validating = "ValidatingAdmissionWebhook"
	Mutating   = "MutatingAdmissionWebhook"
	Conversion = "ConversionWebhook"
)

// Webhook is one entry of spec.webhookdefinitions.
type Webhook struct {
	Type           string // Validating, Mutating or Conversion; other values are kept for Validate
	GenerateName   string
	DeploymentName string
	ContainerPort  int64 // 443 if missing, the default in the CRD of ClusterServiceVersions
	TargetPort     any   // int64 or string; nil if missing
	Path           string
	ConversionCRDs []string
	Fields         map[string]any // the whole entry: rules, failurePolicy, objectSelector, …
	Field          string         // path of the entry for messages: "spec.webhookdefinitions[0]"
}

const defaultWebhookPort = 443

// readCSV decodes a CSV. Some parts of a CSV become API objects: readCSV decodes them into the Go types of the
// API, like the API server. It drops unknown fields and adds a warning.
func readCSV(o ManifestObject) (*CSV, []diag.Warning, error) {
	var errs diag.List
	r := &reader{file: o.File, errs: &errs, types: admit.NewTypes()}
	meta, spec := r.object(o.Object, "", "metadata"), r.object(o.Object, "", "spec")
	c := &CSV{
		File:           o.File,
		Name:           r.str(meta, "metadata", "name"),
		Annotations:    r.strings(meta, "metadata", "annotations"),
		Version:        r.scalarText(spec, "spec", "version"),
		Release:        r.scalarText(spec, "spec", "release"),
		MinKubeVersion: r.scalarText(spec, "spec", "minKubeVersion"),
		Replaces:       r.str(spec, "spec", "replaces"),
		Skips:          r.texts(spec, "spec", "skips"),
		DisplayName:    r.scalarText(spec, "spec", "displayName"),
		Description:    r.scalarText(spec, "spec", "description"),
		Maturity:       r.scalarText(spec, "spec", "maturity"),
		Provider:       r.scalarText(r.object(spec, "spec", "provider"), "spec.provider", "name"),
		Keywords:       r.texts(spec, "spec", "keywords"),
	}
	for _, l := range k8s.Items(spec, "links") {
		c.Links = append(c.Links, Link{Name: k8s.Text(l, "name"), URL: k8s.Text(l, "url")})
	}
	for _, m := range k8s.Items(spec, "maintainers") {
		c.Maintainers = append(c.Maintainers, Maintainer{Name: k8s.Text(m, "name"), Email: k8s.Text(m, "email")})
	}
	if icons := k8s.Items(spec, "icon"); len(icons) > 0 {
		c.Icon = Icon{MediaType: k8s.Text(icons[0], "mediatype"), Base64: k8s.Text(icons[0], "base64data")}
	}
	r.strings(meta, "metadata", "labels") // only to report values of a wrong type
	for _, field := range []string{"labels", "selector"} {
		if spec[field] != nil {
			c.unused = append(c.unused, "spec."+field)
		}
	}
	if c.Name == "" {
		errs.Addf(o.Pos(), "metadata.name is missing")
	}
	c.readModes(r, spec)
	c.readInstall(r, r.object(spec, "spec", "install"))
	c.readAPIs(r, spec)
	r.objects(spec, "spec", "webhookdefinitions", func(at string, m map[string]any) {
		c.Webhooks = append(c.Webhooks, r.webhook(at, m))
	})
	r.objects(spec, "spec", "relatedImages", func(at string, m map[string]any) {
		c.RelatedImages = append(c.RelatedImages, catalog.RelatedImage{Name: r.str(m, at, "name"), Image: r.str(m, at, "image")})
	})
	return c, r.fieldWarnings, errs.Err()
}

// scalarText returns a string field. It also accepts an unquoted value that YAML does not decode as a string,
// such as version: 1.0.
func (r *reader) scalarText(m map[string]any, at, key string) string {
	switch v := m[key].(type) {
	case int64, float64, bool:
		return r.strings(map[string]any{"": map[string]any{"": v}}, "", "")[""]
	default:
		return r.str(m, at, key)
	}
}

func (c *CSV) readModes(r *reader, spec map[string]any) {
	supported := map[catalog.InstallMode]bool{}
	r.objects(spec, "spec", "installModes", func(at string, m map[string]any) {
		name := r.str(m, at, "type")
		c.ModesListed = append(c.ModesListed, name)
		if r.flag(m, at, "supported") {
			supported[catalog.InstallMode(name)] = true
		}
	})
	c.Modes = []catalog.InstallMode{}
	for _, mode := range catalog.InstallModes() {
		if supported[mode] {
			c.Modes = append(c.Modes, mode)
		}
	}
}

func (c *CSV) readInstall(r *reader, install map[string]any) {
	const at = "spec.install.spec"
	c.Strategy = r.str(install, "spec.install", "strategy")
	spec := r.object(install, "spec.install", "spec")
	r.objects(spec, at, "deployments", func(at string, m map[string]any) {
		c.Deployments = append(c.Deployments, Deployment{
			Name: r.str(m, at, "name"), Labels: r.strings(m, at, "label"), Spec: readTyped(r, admit.DeploymentSpec(), r.object(m, at, "spec"), at+".spec"), Field: at,
		})
	})
	permission := func(into *[]Permission) func(string, map[string]any) {
		return func(at string, m map[string]any) {
			p := Permission{ServiceAccount: r.str(m, at, "serviceAccountName"), Field: at}
			for i, rule := range r.list(m, at, "rules") {
				p.Rules = append(p.Rules, readTyped(r, admit.PolicyRule(), rule, diag.Item(at+".rules", i)))
			}
			*into = append(*into, p)
		}
	}
	r.objects(spec, at, "permissions", permission(&c.Permissions))
	r.objects(spec, at, "clusterPermissions", permission(&c.ClusterPerms))
}

func (c *CSV) readAPIs(r *reader, spec map[string]any) {
	api := func(into *[]API) func(string, map[string]any) {
		return func(at string, m map[string]any) {
			*into = append(*into, API{
				Name: r.str(m, at, "name"), Group: r.str(m, at, "group"), Version: r.str(m, at, "version"), Kind: r.str(m, at, "kind"),
				DeploymentName: r.str(m, at, "deploymentName"), ContainerPort: r.integer(m, at, "containerPort"), Field: at,
			})
		}
	}
	crds := r.object(spec, "spec", "customresourcedefinitions")
	r.objects(crds, "spec.customresourcedefinitions", "owned", api(&c.OwnedCRDs))
	r.objects(crds, "spec.customresourcedefinitions", "required", api(&c.RequiredCRDs))
	services := r.object(spec, "spec", "apiservicedefinitions")
	r.objects(services, "spec.apiservicedefinitions", "owned", api(&c.OwnedAPIs))
	r.objects(services, "spec.apiservicedefinitions", "required", api(&c.RequiredAPIs))
	r.objects(spec, "spec", "nativeAPIs", func(at string, m map[string]any) {
		c.NativeAPIs = append(c.NativeAPIs, catalog.GVK{Group: r.str(m, at, "group"), Version: r.str(m, at, "version"), Kind: r.str(m, at, "kind")})
	})
}

func (r *reader) webhook(at string, m map[string]any) Webhook {
	w := Webhook{
		Type: r.str(m, at, "type"), GenerateName: r.str(m, at, "generateName"), DeploymentName: r.str(m, at, "deploymentName"),
		ContainerPort: r.integer(m, at, "containerPort"), Path: r.str(m, at, "webhookPath"),
		ConversionCRDs: r.texts(m, at, "conversionCRDs"), Field: at,
	}
	if w.ContainerPort == 0 {
		w.ContainerPort = defaultWebhookPort
	}
	w.TargetPort = m["targetPort"]
	w.Fields = readTyped(r, admit.Webhook(w.Type == Mutating), m, at)
	return w
}
