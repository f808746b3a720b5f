package declare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
)

// V0 is the dialect of OLM v0's Subscription.
const V0 Dialect = k8s.OLMGroup

// The types below contain every field in the specs of the published CRDs. Other fields are reported
// as unknown.

type specV0 struct {
	Source              string    `json:"source"`
	SourceNamespace     string    `json:"sourceNamespace"`
	Name                string    `json:"name"`
	Channel             string    `json:"channel"`
	StartingCSV         string    `json:"startingCSV"`
	InstallPlanApproval string    `json:"installPlanApproval"`
	Config              *configV0 `json:"config"`
}

type statusV0 struct {
	InstalledCSV string `json:"installedCSV"`
	CurrentCSV   string `json:"currentCSV"`
}

// configV0 is OLM's SubscriptionConfig. The lock contains its values unchanged.
type configV0 struct {
	Selector     *labelSelector    `json:"selector"`
	NodeSelector map[string]string `json:"nodeSelector"`
	Tolerations  []toleration      `json:"tolerations"`
	Resources    *resources        `json:"resources"`
	EnvFrom      []envFrom         `json:"envFrom"`
	Env          []envVar          `json:"env"`
	Volumes      []json.RawMessage `json:"volumes"`
	VolumeMounts []volumeMount     `json:"volumeMounts"`
	Affinity     json.RawMessage   `json:"affinity"`
	Annotations  map[string]string `json:"annotations"`
}

type toleration struct {
	Key               string `json:"key"`
	Operator          string `json:"operator"`
	Value             string `json:"value"`
	Effect            string `json:"effect"`
	TolerationSeconds *int64 `json:"tolerationSeconds"`
}

type resources struct {
	Limits   map[string]json.RawMessage `json:"limits"`
	Requests map[string]json.RawMessage `json:"requests"`
	Claims   []json.RawMessage          `json:"claims"`
}

type envFrom struct {
	Prefix       string   `json:"prefix"`
	ConfigMapRef *nameRef `json:"configMapRef"`
	SecretRef    *nameRef `json:"secretRef"`
}

type nameRef struct {
	Name     string `json:"name"`
	Optional *bool  `json:"optional"`
}

type envVar struct {
	Name      string          `json:"name"`
	Value     string          `json:"value"`
	ValueFrom json.RawMessage `json:"valueFrom"`
}

type volumeMount struct {
	Name              string `json:"name"`
	MountPath         string `json:"mountPath"`
	ReadOnly          bool   `json:"readOnly"`
	RecursiveReadOnly string `json:"recursiveReadOnly"`
	SubPath           string `json:"subPath"`
	SubPathExpr       string `json:"subPathExpr"`
	MountPropagation  string `json:"mountPropagation"`
}

func fieldsV0() map[Field]string {
	return map[Field]string{
		FieldNamespace: "metadata.namespace", FieldPackage: "spec.name", FieldChannel: "spec.channel",
		FieldCatalog: "spec.source", FieldCatalogNamespace: "spec.sourceNamespace", FieldStartingCSV: "spec.startingCSV",
		FieldApproval: "spec.installPlanApproval", FieldConfig: "spec.config", FieldInstalled: "status.installedCSV",
	}
}

func (r *reader) readSubscriptionV0(n *yamlnode.Node) {
	var o typedObject[specV0, statusV0]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	c.Name("spec.name", o.Spec.Name)
	c.Name("spec.source", o.Spec.Source)
	c.Namespace("spec.sourceNamespace", o.Spec.SourceNamespace)
	c.enum("spec.installPlanApproval", o.Spec.InstallPlanApproval, string(Automatic), string(Manual))
	s := Subscription{
		Dialect: V0, Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Package: o.Spec.Name,
		Channels: singleton(o.Spec.Channel), Catalog: &catalog.ID{Namespace: o.Spec.SourceNamespace, Name: o.Spec.Source},
		StartingCSV: o.Spec.StartingCSV, Approval: orAutomatic(o.Spec.InstallPlanApproval), Policy: CatalogProvided,
		Config: c.checkConfig(n, "spec.config", o.Spec.Config), InstalledCSV: o.Status.InstalledCSV,
		Pos: c.Whole, Fields: c.Fields,
	}
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
}

// singleton returns a list that contains s, or nil if s is empty.
func singleton(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func orAutomatic(s string) Approval {
	if s == "" {
		return Automatic
	}
	return Approval(s)
}

// checkConfig checks the SubscriptionConfig at the field path at, and returns it as canonical JSON. It returns
// nil if the config is missing or empty.
func (c checker) checkConfig(n *yamlnode.Node, at string, o *configV0) []byte {
	if o == nil {
		return nil
	}
	for i, e := range o.Env {
		field := diag.Item(at+".env", i)
		c.Require(field+".name", e.Name)
		c.checkKube(field+".valueFrom", e.ValueFrom, admit.EnvVarSource())
	}
	c.checkSelector(at+".selector", o.Selector)
	c.checkKube(at+".affinity", o.Affinity, admit.Affinity())
	c.checkResources(at+".resources", childNode(n, at+".resources"))
	volumes := map[string]bool{}
	for i, data := range o.Volumes {
		field := diag.Item(at+".volumes", i)
		name := k8s.Text(c.checkKube(field, data, admit.Volume()), "name")
		if len(data) > 0 && c.Require(field+".name", name) && volumes[name] {
			c.Addf(field+".name", "duplicate volume %q", name)
		}
		volumes[name] = true
	}
	return c.canonicalJSON(childNode(n, at))
}

// checkResources checks the quantities of the resources at a field.
func (c checker) checkResources(at string, n *yamlnode.Node) {
	if n != nil {
		c.checkKube(at, c.canonicalJSON(n), admit.Resources())
	}
}

// childNode returns the node at the field path at, or nil if it is missing.
func childNode(n *yamlnode.Node, at string) *yamlnode.Node {
	for step := range strings.SplitSeq(at, ".") {
		_, n = yamlnode.Field(n, step)
	}
	return n
}

// checkKube checks data, the value at the field path at, against a Kubernetes type. It returns the decoded
// value, or nil if data is not a JSON object.
func (c checker) checkKube(at string, data json.RawMessage, part admit.Part) map[string]any {
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil // invalid JSON is already reported
	}
	_, shape := admit.PrunePart(admit.NewTypes(), part, v, at)
	for _, field := range shape.Unknown {
		name := strings.TrimPrefix(field, at+".")
		c.Faults.Addf(c.At(field), "unknown field %q in %s%s", name, at, diag.DidYouMean(name, part.Fields()))
	}
	for _, f := range shape.Wrong {
		c.Addf(admit.FieldPath(f.Field), "%s", f.Message)
	}
	m, _ := v.(map[string]any)
	return m
}

// canonicalJSON returns a mapping as canonical JSON, or nil if it is empty or null.
func (c checker) canonicalJSON(n *yamlnode.Node) []byte {
	var raw json.RawMessage
	c.Faults.Add(c.Whole, yamlnode.Decode(c.file, n, &raw)) // a fault that is reported twice is kept once
	if s := string(raw); s == "{}" || s == "null" {
		return nil
	}
	return raw
}

type specCatalogSource struct {
	SourceType     string          `json:"sourceType"`
	Priority       int32           `json:"priority"`
	ConfigMap      string          `json:"configMap"`
	Address        string          `json:"address"`
	Image          string          `json:"image"`
	GRPCPodConfig  *grpcPodConfig  `json:"grpcPodConfig"`
	UpdateStrategy *updateStrategy `json:"updateStrategy"`
	Secrets        []string        `json:"secrets"`
	DisplayName    string          `json:"displayName"`
	Description    string          `json:"description"`
	Publisher      string          `json:"publisher"`
	Icon           *icon           `json:"icon"`
	RunAsRoot      bool            `json:"runAsRoot"`
}

type grpcPodConfig struct {
	NodeSelector          map[string]string `json:"nodeSelector"`
	Tolerations           []toleration      `json:"tolerations"`
	Affinity              json.RawMessage   `json:"affinity"`
	PriorityClassName     string            `json:"priorityClassName"`
	SecurityContextConfig string            `json:"securityContextConfig"`
	MemoryTarget          json.RawMessage   `json:"memoryTarget"`
	ExtractContent        *struct {
		CacheDir   string `json:"cacheDir"`
		CatalogDir string `json:"catalogDir"`
		ConfigDir  string `json:"configDir"` // name of catalogDir in older versions of OLM
	} `json:"extractContent"`
}

type updateStrategy struct {
	RegistryPoll *struct {
		Interval string `json:"interval"`
	} `json:"registryPoll"`
}

type icon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

func (r *reader) readCatalogSource(n *yamlnode.Node) {
	var o typedObject[specCatalogSource, json.RawMessage]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	c.oneOf("spec.sourceType", o.Spec.SourceType, "grpc", "configmap", "internal")
	if pod := o.Spec.GRPCPodConfig; pod != nil {
		c.checkKube("spec.grpcPodConfig.affinity", pod.Affinity, admit.Affinity())
	}
	content := "spec.image"
	if o.Spec.Image == "" {
		content = "spec.address"
	}
	declare(r, &r.set.CatalogSources, CatalogSource{
		ID:    catalog.ID{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name},
		Image: o.Spec.Image, Address: o.Spec.Address, Priority: int(o.Spec.Priority), Labels: o.Metadata.Labels, Pos: c.Whole, Content: c.At(content),
	})
}

type specOperatorGroup struct {
	TargetNamespaces   []string       `json:"targetNamespaces"`
	Selector           *labelSelector `json:"selector"`
	ServiceAccountName string         `json:"serviceAccountName"`
	StaticProvidedAPIs bool           `json:"staticProvidedAPIs"`
	UpgradeStrategy    string         `json:"upgradeStrategy"`
}

func (r *reader) readOperatorGroup(n *yamlnode.Node) {
	var o typedObject[specOperatorGroup, json.RawMessage]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	r.declareGroup(c, "spec", o.Spec, OperatorGroup{
		Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
		ExcludeGlobal: o.Metadata.Annotations["olm.operatorframework.io/exclude-global-namespace-resolution"] == "true", Pos: c.Whole, Fields: c.Fields,
	})
}

// declareGroup adds an OperatorGroup to the set. g contains the metadata of the group. spec is the spec of the
// group. at is the field path of the spec.
func (r *reader) declareGroup(c checker, at string, spec specOperatorGroup, g OperatorGroup) {
	g.ServiceAccountName, g.UpgradeStrategy = spec.ServiceAccountName, spec.UpgradeStrategy
	c.enum(at+".upgradeStrategy", spec.UpgradeStrategy, "Default", "TechPreviewUnsafeFailForward")
	g.TargetNamespaces = c.targetNamespaces(at+".targetNamespaces", spec.TargetNamespaces)
	switch sel := c.checkSelector(at+".selector", spec.Selector); {
	case sel.Empty():
	case len(spec.TargetNamespaces) > 0:
		msg := fmt.Sprintf("%[1]s.selector has no effect with %[1]s.targetNamespaces", at)
		r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: c.At(at + ".selector"), Code: "selector-ignored", Msg: msg})
	default:
		g.Selector = sel
	}
	g.Digest = declarationDigest(map[string]any{
		"name": g.Name, "namespace": g.Namespace, "targetNamespaces": g.TargetNamespaces, "selector": g.Selector,
		"serviceAccountName": g.ServiceAccountName, "upgradeStrategy": g.UpgradeStrategy, "excludeGlobal": g.ExcludeGlobal,
	})
	declare(r, &r.set.OperatorGroups, g)
}

// targetNamespaces returns names sorted and without duplicates. If names is empty or contains an
// empty name, it returns nil, which means all namespaces.
func (c checker) targetNamespaces(field string, names []string) []string {
	var out []string
	for i, ns := range names {
		if ns == "" {
			return nil
		}
		c.Namespace(diag.Item(field, i), ns)
		out = append(out, ns)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *reader) readNamespace(n *yamlnode.Node) {
	var o typedObject[json.RawMessage, json.RawMessage]
	c := r.decode(n, &o)
	c.Namespace("metadata.name", o.Metadata.Name)
	labels := map[string]string{"kubernetes.io/metadata.name": o.Metadata.Name} // the API server sets this label
	maps.Copy(labels, o.Metadata.Labels)
	declare(r, &r.set.Namespaces, Namespace{Name: o.Metadata.Name, Labels: labels, Annotations: o.Metadata.Annotations, Pos: c.Whole})
}

// writeV0 returns d as an OLM v0 Subscription. If d.Group is set, an OperatorGroup comes first.
func writeV0(d Declaration) []k8s.Object {
	spec := map[string]any{"name": d.Package, "source": d.Catalog.Name, "sourceNamespace": d.Catalog.Namespace}
	putText(spec, "channel", d.Channel)
	putText(spec, "startingCSV", d.Start)
	putText(spec, "installPlanApproval", string(d.Approval))
	putConfig(spec, "config", d.Config)
	sub := k8s.New("operators.coreos.com/v1alpha1", "Subscription", d.Namespace, d.Name)
	sub["spec"] = spec
	if !d.Group {
		return []k8s.Object{sub}
	}
	targets := map[string]any{}
	if !slices.Equal(d.Watch, []string{"*"}) {
		targets["targetNamespaces"] = k8s.Values(d.Watch...)
	}
	group := k8s.New("operators.coreos.com/v1", "OperatorGroup", d.Namespace, d.Namespace)
	group["spec"] = targets
	return []k8s.Object{group, sub}
}
