package bundle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// validator checks one aspect of a bundle.
type validator func(*checker)

// objectValidators returns the checks for all rules that OLM v0, OLM v1 or the API server enforce.
func objectValidators() []validator {
	return []validator{
		checkIdentity, checkModes, checkDeployments, checkPermissions, checkObjects, checkOwned,
		checkWebhooks, checkConversions, checkWebhookRules, checkReferences, checkDirectives, checkReservedKeys, checkImages,
	}
}

// Validate checks b. The error is a diag.List of all faults that prevent installation, each with file and
// field. The warnings are sorted. A fault is only a warning if one of OLM v0 and OLM v1 accepts the bundle.
func Validate(b *Bundle) ([]diag.Warning, error) {
	c := &checker{b: b, csv: b.CSV}
	for _, validate := range objectValidators() {
		validate(c)
	}
	return diag.SortWarnings(slices.Concat(c.warnings, b.Warnings, b.fieldWarnings)), c.errs.Err()
}

// checker collects the faults and warnings about one bundle.
type checker struct {
	b        *Bundle
	csv      *CSV
	errs     diag.List
	warnings []diag.Warning
}

// faultf adds a fault with the position of the CSV.
func (c *checker) faultf(format string, args ...any) {
	c.errs.Addf(diag.Pos{File: c.csv.File}, format, args...)
}

func (c *checker) warnf(code, format string, args ...any) {
	c.warnings = append(c.warnings, diag.Warning{Pos: diag.Pos{File: c.csv.File}, Code: code, Msg: fmt.Sprintf(format, args...)})
}

func checkIdentity(c *checker) {
	if !catalog.IsBundleName(c.csv.Name) {
		c.faultf("metadata.name: %q is not a valid name", c.csv.Name)
	} else if !c.b.Complete && !yamlnode.IsDNS1123Subdomain(c.csv.Name) {
		c.warnf("csv-name", "metadata.name: %q is not a valid name: OLM v0 cannot install it", c.csv.Name)
	}
	if c.csv.Version == "" {
		c.faultf("spec.version is missing")
	} else if _, err := catalog.ParseVersion(c.csv.Version); err != nil {
		c.faultf("spec.version: %w", err)
	}
	if v := c.csv.MinKubeVersion; v != "" {
		if _, err := catalog.ParseVersion(strings.TrimPrefix(v, "v")); err != nil {
			c.warnf("min-kube-version", "spec.minKubeVersion: %v: OLM v0 cannot install it", err)
		}
	}
	if c.csv.Replaces == c.csv.Name || slices.Contains(c.csv.Skips, c.csv.Name) {
		c.faultf("spec.replaces, spec.skips: %q replaces itself", c.csv.Name)
	}
}

func checkModes(c *checker) {
	for i, mode := range c.csv.ModesListed {
		at := diag.Item("spec.installModes", i)
		if _, err := catalog.ParseInstallMode(mode); err != nil {
			c.warnf("install-mode", "%s.type: %v", at, err)
		}
		if slices.Index(c.csv.ModesListed, mode) < i {
			c.warnf("install-mode", "%s.type: %q appears twice: OLM v0 cannot install it", at, mode)
		}
	}
	if len(c.csv.Modes) == 0 {
		c.faultf("spec.installModes: no install mode is supported")
	}
}

func checkDeployments(c *checker) {
	if c.csv.Strategy != "" && c.csv.Strategy != "deployment" {
		c.faultf("spec.install.strategy: %q is not \"deployment\"", c.csv.Strategy)
	}
	seen := map[string]bool{}
	for _, d := range c.csv.Deployments {
		if !yamlnode.IsDNS1123Subdomain(d.Name) {
			c.faultf("%s.name: %q is not a valid name", d.Field, d.Name)
		}
		if seen[d.Name] {
			c.faultf("%s.name: deployment %q appears twice", d.Field, d.Name)
		}
		seen[d.Name] = true
		if len(k8s.Map(d.Spec, "selector")) == 0 {
			c.faultf("%s.spec.selector is missing", d.Field)
		}
		labels := k8s.Map(d.Spec, "template", "metadata", "labels")
		for key, value := range k8s.Map(d.Spec, "selector", "matchLabels") {
			if labels[key] != value {
				c.faultf("%s.spec.selector.matchLabels[%q] does not match the labels of the pod template", d.Field, key)
			}
		}
	}
}

func checkPermissions(c *checker) {
	for _, p := range slices.Concat(c.csv.Permissions, c.csv.ClusterPerms) {
		if p.ServiceAccount != "" && !yamlnode.IsDNS1123Subdomain(p.ServiceAccount) {
			c.faultf("%s.serviceAccountName: %q is not a valid name", p.Field, p.ServiceAccount)
		}
		for i, v := range p.Rules {
			if rule, _ := v.(map[string]any); len(k8s.List(rule, "verbs")) == 0 {
				c.faultf("%s.verbs is missing", diag.Item(p.Field+".rules", i))
			}
		}
	}
}

// checkObjects rejects objects without a name and duplicate objects. Rendering makes all other checks. In a
// complete bundle, such as a chart, objects of the same name in several namespaces are no duplicates. Equal
// duplicates are a warning, because some charts render a CRD several times.
func checkObjects(c *checker) {
	seen := map[string]ManifestObject{}
	for _, o := range c.b.Objects {
		key := o.Group() + "/" + o.Kind() + "/" + o.Name()
		if c.b.Complete {
			key += "/" + o.Namespace()
		}
		switch first, twice := seen[key]; {
		case o.Name() == "":
			c.errs.Addf(o.Pos(), "document %d: %s: metadata.name is missing", o.Document+1, o.Kind())
		case twice && reflect.DeepEqual(first.Object, o.Object) && (c.b.Complete || o.Kind() != "CustomResourceDefinition"):
			c.warnf("object-twice", "duplicate object %s: in %s and %s", o, first.File, o.File)
		case twice:
			c.errs.Addf(o.Pos(), "duplicate object %s: also in %s", o, first.File)
		default:
			seen[key] = o
		}
		checkKind(c, o)
	}
}

// CheckServed returns a fault for each custom resource in b whose version is not served by its CRD in b. The
// error is a diag.List. Rendering only warns about such an object, although no cluster can accept it.
func CheckServed(b *Bundle) error {
	c := &checker{b: b}
	for _, file := range c.crds() {
		crd := k8s.ParseCRD(file.Object)
		for _, o := range b.Objects {
			if _, version, _ := strings.Cut(o.APIVersion(), "/"); o.Group() == crd.Group && o.Kind() == crd.Kind && !slices.Contains(crd.Served(), version) {
				c.errs.Addf(o.Pos(), "%s: CRD %q of the bundle does not serve version %q", o, crd.Name, version)
			}
		}
	}
	return c.errs.Err()
}

// checkKind rejects objects and CRDs with an invalid or reserved API group, version or kind. It
// accepts an empty apiVersion, because OLM may set it.
func checkKind(c *checker, o ManifestObject) {
	var faults []string
	if o.APIVersion() != "" {
		faults = k8s.KindFaults(o.APIVersion(), o.Kind())
	}
	if k8s.IsCRD(o.Object) {
		faults = append(faults, k8s.ParseCRD(o.Object).Faults()...)
	}
	for _, fault := range faults {
		c.errs.Addf(o.Pos(), "%s: %s", o, fault)
	}
}

// crds returns the bundle's CRDs by name.
func (c *checker) crds() map[string]ManifestObject {
	out := map[string]ManifestObject{}
	for _, o := range c.b.Objects {
		if k8s.IsCRD(o.Object) {
			out[o.Name()] = o
		}
	}
	return out
}

func checkOwned(c *checker) {
	crds := c.crds()
	for _, api := range c.csv.OwnedCRDs {
		crd, ok := crds[api.Name]
		switch {
		case api.Name == "" || api.Version == "" || api.Kind == "":
			c.faultf("%s: name, version and kind are required", api.Field)
		case !ok:
			c.faultf("%s: owned CRD %q is not in the bundle", api.Field, api.Name)
		default:
			if _, ok := k8s.ParseCRD(crd.Object).Version(api.Version); !ok {
				c.warnf("owned-version", "%s: CRD %q has no version %q: OLM v0 cannot install it", api.Field, api.Name, api.Version)
			}
			c.addFieldFault(api.Field+".version", k8s.LabelFault(api.Version))
			c.addFieldFault(api.Field+".kind", k8s.LabelFault(strings.ToLower(api.Kind)))
		}
	}
	for _, api := range c.csv.RequiredAPIs {
		if api.Group == "" || api.Version == "" || api.Kind == "" {
			c.faultf("%s: group, version and kind are required", api.Field)
		}
	}
	for _, api := range c.csv.OwnedAPIs {
		c.addFieldFault(api.Field+".group", k8s.GroupFault(api.Group))
		c.addFieldFault(api.Field+".version", k8s.LabelFault(api.Version))
		c.addFieldFault(api.Field+".kind", k8s.LabelFault(strings.ToLower(api.Kind)))
		c.addFieldFault(api.Field+".name", k8s.LabelFault(api.Name))
		c.checkDeploymentName(api.Field, api.DeploymentName)
	}
}

// addFieldFault adds a fault about a field of the CSV. It does nothing if fault is empty.
func (c *checker) addFieldFault(field, fault string) {
	if fault != "" {
		c.faultf("%s: %s", field, fault)
	}
}

func (c *checker) checkDeploymentName(at, name string) {
	if !slices.ContainsFunc(c.csv.Deployments, func(d Deployment) bool { return d.Name == name }) {
		c.faultf("%s.deploymentName: the CSV has no deployment %q", at, name)
	}
}

func checkWebhooks(c *checker) {
	seen := map[string]string{} // generateName → webhook type
	for _, w := range c.csv.Webhooks {
		c.checkDeploymentName(w.Field, w.DeploymentName)
		if w.Type != Validating && w.Type != Mutating && w.Type != Conversion {
			c.faultf("%s.type: %q: must be one of %s, %s, %s", w.Field, w.Type, Validating, Mutating, Conversion)
		}
		if !yamlnode.IsDNS1123Subdomain(strings.TrimRight(w.GenerateName, "-")) {
			c.faultf("%s.generateName: %q is not a valid name", w.Field, w.GenerateName)
		}
		switch other, ok := seen[w.GenerateName]; {
		case ok && other == w.Type:
			c.faultf("%s.generateName: %q appears twice", w.Field, w.GenerateName)
		case ok:
			c.warnf("webhook-name", "%s.generateName: %q is already used by a %s", w.Field, w.GenerateName, other)
		}
		seen[w.GenerateName] = w.Type
	}
}

func checkConversions(c *checker) {
	crds, converted := c.crds(), map[string]bool{}
	for _, w := range c.csv.Webhooks {
		if w.Type != Conversion {
			continue
		}
		if !slices.Equal(c.csv.Modes, []catalog.InstallMode{catalog.AllNamespaces}) {
			c.faultf("%s: a conversion webhook serves the whole cluster: the CSV must support only AllNamespaces", w.Field)
		}
		for i, name := range w.ConversionCRDs {
			at := diag.Item(w.Field+".conversionCRDs", i)
			if converted[name] {
				c.faultf("%s: CRD %q has two conversion webhooks", at, name)
			}
			converted[name] = true
			if !slices.ContainsFunc(c.csv.OwnedCRDs, func(a API) bool { return a.Name == name }) {
				c.faultf("%s: the CSV does not own CRD %q", at, name)
			}
			if k8s.Map(crds[name].Object, "spec")["preserveUnknownFields"] == true {
				c.faultf("%s: CRD %q preserves unknown fields, which a conversion webhook does not support", at, name)
			}
		}
	}
}

// checkWebhookRules rejects webhooks that match all API groups, OLM's API groups, or webhook configurations.
// Such webhooks could block the repair of a cluster. OLM v0 also rejects them in a CSV. They are allowed in a
// complete bundle, which OLM never installs.
func checkWebhookRules(c *checker) {
	if c.b.Complete {
		return
	}
	for _, w := range c.csv.Webhooks {
		c.checkWebhook(diag.Pos{File: c.csv.File}, w.Field, w.Fields)
	}
	for _, o := range c.b.Objects {
		if o.Group() != "admissionregistration.k8s.io" {
			continue
		}
		for i, w := range k8s.Items(o.Object, "webhooks") {
			c.checkWebhook(o.Pos(), o.String()+": "+diag.Item("webhooks", i), w)
		}
	}
}

func (c *checker) checkWebhook(pos diag.Pos, field string, webhook map[string]any) {
	for i, rule := range k8s.Items(webhook, "rules") {
		at := diag.Item(field+".rules", i)
		groups, resources := k8s.Texts(rule, "apiGroups"), k8s.Texts(rule, "resources")
		for _, g := range groups {
			if g == "*" || g == k8s.OLMGroup || g == k8s.OLMv1Group {
				c.errs.Addf(pos, "%s.apiGroups: a webhook on group %q is not allowed", at, g)
			}
		}
		if !slices.Contains(groups, "admissionregistration.k8s.io") {
			continue
		}
		for _, r := range resources {
			switch strings.ToLower(r) {
			case "*", "*/*", "mutatingwebhookconfiguration", "mutatingwebhookconfigurations", "validatingwebhookconfiguration", "validatingwebhookconfigurations":
				c.errs.Addf(pos, "%s.resources: a webhook on %q is not allowed", at, r)
			}
		}
	}
}
