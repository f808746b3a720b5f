package declare

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// OCM is the dialect of Open Cluster Management's OperatorPolicy.
const OCM Dialect = "policy.open-cluster-management.io"

// specPolicy contains every field in the spec of the published CRD.
type specPolicy struct {
	Severity          string             `json:"severity"`
	RemediationAction string             `json:"remediationAction"`
	ComplianceType    string             `json:"complianceType"`
	OperatorGroup     *policyGroup       `json:"operatorGroup"`
	Subscription      policySubscription `json:"subscription"`
	Versions          []string           `json:"versions"`
	UpgradeApproval   string             `json:"upgradeApproval"`
	RemovalBehavior   struct {
		OperatorGroups            string `json:"operatorGroups"`
		Subscriptions             string `json:"subscriptions"`
		ClusterServiceVersions    string `json:"clusterServiceVersions"`
		CustomResourceDefinitions string `json:"customResourceDefinitions"`
	} `json:"removalBehavior"`
	ComplianceConfig struct {
		CatalogSourceUnhealthy       string `json:"catalogSourceUnhealthy"`
		DeploymentsUnavailable       string `json:"deploymentsUnavailable"`
		UpgradesAvailable            string `json:"upgradesAvailable"`
		DeprecationsPresent          string `json:"deprecationsPresent"`
		MinorChannelUpgradeAvailable string `json:"minorChannelUpgradeAvailable"`
	} `json:"complianceConfig"`
}

type policySubscription struct {
	specV0
	Namespace string `json:"namespace"`
}

type policyGroup struct {
	specOperatorGroup
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func fieldsOCM() map[Field]string {
	return map[Field]string{
		FieldNamespace: "spec.subscription.namespace", FieldPackage: "spec.subscription.name", FieldChannel: "spec.subscription.channel",
		FieldRange: "spec.versions", FieldCatalog: "spec.subscription.source", FieldCatalogNamespace: "spec.subscription.sourceNamespace",
		FieldStartingCSV: "spec.subscription.startingCSV", FieldApproval: "spec.upgradeApproval", FieldConfig: "spec.subscription.config",
	}
}

// readOperatorPolicy reads an OperatorPolicy as the Subscription and OperatorGroup that its
// controller would create.
func (r *reader) readOperatorPolicy(n *yamlnode.Node) {
	before := len(r.errs)
	var o typedObject[specPolicy, *yamlnode.Node]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.checkCompliance(o.Spec)
	c.oneOf("spec.upgradeApproval", o.Spec.UpgradeApproval, "Automatic", "None")
	sub := o.Spec.Subscription
	c.Namespace("spec.subscription.name", sub.Name) // the controller does not accept other names
	if _, hasNamespace := c.Fields["spec.subscription.namespace"]; hasNamespace {
		c.Namespace("spec.subscription.namespace", sub.Namespace)
	} else {
		c.Addf("spec.subscription.namespace", "missing: set it, because the suggested namespace of the package is not available offline")
	}
	if sub.InstallPlanApproval != "" {
		c.Addf("spec.subscription.installPlanApproval", "not allowed in a policy: use spec.upgradeApproval")
	}
	s := Subscription{
		Dialect: OCM, Name: sub.Name, Namespace: sub.Namespace, Package: sub.Name, Channels: singleton(sub.Channel), DefaultChannel: sub.Channel == "",
		Catalog: c.policyCatalog(sub.Source, sub.SourceNamespace), Allowed: c.approvedVersions(o.Spec.Versions, sub.StartingCSV), StartingCSV: sub.StartingCSV,
		Approval: Automatic, Policy: CatalogProvided, Config: c.checkConfig(n, "spec.subscription.config", sub.Config), Pos: c.Whole, Fields: c.Fields,
	}
	if o.Spec.UpgradeApproval == "None" {
		s.Approval = Manual
	}
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
	r.declarePolicyGroup(c, s, o.Spec.OperatorGroup)
	r.warnInform(c, o.Spec.RemediationAction)
	r.rejectTemplates(n, before)
}

// checkCompliance checks the fields that control how a policy is evaluated and reported. They do not affect the
// declaration. The complianceType mustnothave is a fault, because it declares no operator.
func (c checker) checkCompliance(spec specPolicy) {
	c.enum("spec.severity", spec.Severity, "low", "Low", "medium", "Medium", "high", "High", "critical", "Critical")
	c.enum("spec.remediationAction", spec.RemediationAction, "inform", "Inform", "enforce", "Enforce")
	c.oneOf("spec.complianceType", spec.ComplianceType, "musthave", "mustnothave")
	if spec.ComplianceType == "mustnothave" {
		c.Addf("spec.complianceType", "mustnothave declares no operator: remove the policy from the declarations; undeclared operators are not rendered")
	}
	removal, compliance := spec.RemovalBehavior, spec.ComplianceConfig
	for _, f := range []struct {
		field, value string
		allowed      []string
	}{
		{"removalBehavior.operatorGroups", removal.OperatorGroups, []string{"Keep", "DeleteIfUnused"}},
		{"removalBehavior.subscriptions", removal.Subscriptions, []string{"Keep", "Delete"}},
		{"removalBehavior.clusterServiceVersions", removal.ClusterServiceVersions, []string{"Keep", "Delete"}},
		{"removalBehavior.customResourceDefinitions", removal.CustomResourceDefinitions, []string{"Keep", "Delete"}},
		{"complianceConfig.catalogSourceUnhealthy", compliance.CatalogSourceUnhealthy, []string{"Compliant", "NonCompliant"}},
		{"complianceConfig.deploymentsUnavailable", compliance.DeploymentsUnavailable, []string{"Compliant", "NonCompliant"}},
		{"complianceConfig.upgradesAvailable", compliance.UpgradesAvailable, []string{"Compliant", "NonCompliant"}},
		{"complianceConfig.deprecationsPresent", compliance.DeprecationsPresent, []string{"Compliant", "NonCompliant"}},
		{"complianceConfig.minorChannelUpgradeAvailable", compliance.MinorChannelUpgradeAvailable, []string{"Compliant", "NonCompliant"}},
	} {
		c.enum("spec."+f.field, f.value, f.allowed...)
	}
}

// policyCatalog returns the catalog that a policy names. It returns nil if the policy names none,
// so that any catalog with the package is permitted.
func (c checker) policyCatalog(name, namespace string) *catalog.ID {
	switch {
	case name == "" && namespace == "":
		return nil
	case name == "":
		c.Addf("spec.subscription.source", "missing: sourceNamespace is set, so set both or neither")
	case namespace == "":
		c.Addf("spec.subscription.sourceNamespace", "missing: source is set, so set both or neither")
	default:
		c.Name("spec.subscription.source", name)
		c.Namespace("spec.subscription.sourceNamespace", namespace)
	}
	return &catalog.ID{Namespace: namespace, Name: name}
}

// approvedVersions returns the names of the bundles that a policy permits, sorted: the names in the list
// entries, and the name starting, unless it is empty. Each entry is a list of names separated by commas. If
// entries contains no name, it returns nil, which permits all bundles.
func (c checker) approvedVersions(entries []string, starting string) []string {
	var out []string
	for i, entry := range entries {
		for name := range strings.SplitSeq(entry, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if !yamlnode.IsDNS1123Subdomain(name) {
				c.Addf(diag.Item("spec.versions", i), "%q is not the name of a ClusterServiceVersion, such as \"etcdoperator.v0.9.4\"", name)
			}
			out = append(out, name)
		}
	}
	if len(out) > 0 && starting != "" {
		out = append(out, starting)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// declarePolicyGroup adds the OperatorGroup in the policy of s.
func (r *reader) declarePolicyGroup(c checker, s Subscription, o *policyGroup) {
	if o == nil {
		return
	}
	const at = "spec.operatorGroup"
	c.Name("spec.operatorGroup.name", o.Name)
	if o.Namespace != "" && o.Namespace != s.Namespace && yamlnode.IsDNS1123Label(s.Namespace) {
		c.Addf("spec.operatorGroup.namespace", "%q is not the namespace of spec.subscription, %q", o.Namespace, s.Namespace)
	}
	fields := diag.Fields{}
	for field, pos := range c.Fields {
		if rest, below := strings.CutPrefix(field, at); below {
			fields["spec"+rest] = pos
		}
	}
	r.declareGroup(c, at, o.specOperatorGroup, OperatorGroup{Namespace: s.Namespace, Name: o.Name, Pos: c.At(at), Fields: fields, Policy: s.Name})
}

// warnInform adds a warning if the remediationAction is inform: such a policy installs nothing. action is the
// remediationAction of the policy itself. The remediationAction of the enclosing Policy takes precedence.
func (r *reader) warnInform(c checker, action string) {
	pos := c.At("spec.remediationAction")
	if _, v := yamlnode.Field(specOf(r.policy), "remediationAction"); v != nil {
		action, _ = yamlnode.Text(v)
		pos = r.at(v)
	}
	if !strings.EqualFold(action, "enforce") {
		r.addInformWarning(pos)
	}
}

func specOf(n *yamlnode.Node) *yamlnode.Node {
	_, spec := yamlnode.Field(n, "spec")
	return spec
}

// rejectTemplates adds a fault for each value that is a template, because only a hub or a cluster can evaluate
// it. If the object has other faults at the same positions, it removes these. before is the index of the
// object's first fault in r.errs.
func (r *reader) rejectTemplates(n *yamlnode.Node, before int) {
	var templateFaults diag.List
	_, meta := yamlnode.Field(n, "metadata")
	_, annotations := yamlnode.Field(meta, "annotations")
	literal, _ := strconv.ParseBool(scalarField(annotations, "policy.open-cluster-management.io/disable-templates"))
	forEachText(n, "", func(path string, n *yamlnode.Node) {
		supported := slices.ContainsFunc([]string{"spec.subscription", "spec.operatorGroup", "spec.versions"}, func(in string) bool { return strings.HasPrefix(path, in) })
		switch {
		case strings.Contains(n.Value, "{{hub"):
			templateFaults.Addf(r.at(n), "%s: hub templates are not supported: use literal values, with one policy per environment", path)
		case strings.Contains(n.Value, "{{") && supported && !literal:
			templateFaults.Addf(r.at(n), "%s: templates are not supported: use literal values, with one policy per environment", path)
		}
	})
	kept := slices.DeleteFunc(slices.Clone(r.errs[before:]), func(e *diag.Error) bool {
		return slices.ContainsFunc(templateFaults, func(f *diag.Error) bool { return f.Pos == e.Pos })
	})
	r.errs = append(append(r.errs[:before:before], kept...), templateFaults...)
}

// forEachText calls f with each scalar and each field name in n, and with its path.
func forEachText(n *yamlnode.Node, path string, f func(path string, n *yamlnode.Node)) {
	switch n.Kind { //nolint:exhaustive // other nodes have no text
	case yamlnode.ScalarNode:
		f(path, n)
	case yamlnode.SequenceNode:
		for i, item := range n.Content {
			forEachText(item, diag.Item(path, i), f)
		}
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			f(path, n.Content[i])
			forEachText(n.Content[i+1], strings.TrimPrefix(path+"."+n.Content[i].Value, "."), f)
		}
	}
}

// readPolicy reads the declarations in a Policy or a ConfigurationPolicy: OperatorPolicies, and
// objects in ConfigurationPolicies. It reports whether there are any.
func (r *reader) readPolicy(n *yamlnode.Node) bool {
	templates := yamlnode.NodesAt(n, "spec.policy-templates.[].objectDefinition")
	if scalarField(n, "kind") == "ConfigurationPolicy" {
		templates = []*yamlnode.Node{n}
	}
	holds := func(t *yamlnode.Node) bool { return isOperatorPolicy(t) || len(embeddedDeclarations(t)) > 0 }
	if !slices.ContainsFunc(templates, holds) {
		return false
	}
	var disabled bool
	if _, v := yamlnode.Field(specOf(n), "disabled"); v != nil {
		r.errs.Add(r.at(v), yamlnode.Decode(r.file, v, &disabled))
	}
	for _, t := range templates {
		switch {
		case !holds(t):
			r.warnNested(t, n)
		case disabled:
			msg := objectTitle(t) + " is ignored, because " + objectTitle(n) + " is disabled"
			r.set.Warnings = append(r.set.Warnings, diag.Warning{Pos: r.at(t), Code: "not-declared", Msg: msg})
		case isOperatorPolicy(t):
			r.policy = n
			r.readObject(t)
			r.policy = nil
		default:
			r.readEmbedded(t, n)
		}
	}
	return true
}

// embeddedDeclarations returns the object templates of a ConfigurationPolicy that are declarations.
// A template without a spec only checks that an object exists, and does not count.
func embeddedDeclarations(n *yamlnode.Node) []*yamlnode.Node {
	if group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/"); group != string(OCM) || scalarField(n, "kind") != "ConfigurationPolicy" {
		return nil
	}
	return slices.DeleteFunc(yamlnode.NodesAt(n, "spec.object-templates.[]"), func(t *yamlnode.Node) bool {
		_, o := yamlnode.Field(t, "objectDefinition")
		group, _, _ := strings.Cut(scalarField(o, "apiVersion"), "/")
		return scalarField(t, "complianceType") == "mustnothave" || specOf(o) == nil || !isOurs(group) || !slices.ContainsFunc(knownKinds(), func(k knownKind) bool { return k.group == group && k.kind == scalarField(o, "kind") })
	})
}

// readEmbedded reads the declarations in the ConfigurationPolicy n. policy is the Policy that contains n, or n
// itself.
func (r *reader) readEmbedded(n, policy *yamlnode.Node) {
	action, pos := scalarField(specOf(n), "remediationAction"), r.at(n)
	if outer := scalarField(specOf(policy), "remediationAction"); outer != "" {
		action = outer
	}
	for _, t := range embeddedDeclarations(n) {
		_, o := yamlnode.Field(t, "objectDefinition")
		before, set := len(r.errs), *r.set
		forEachText(o, "", func(path string, v *yamlnode.Node) {
			if strings.Contains(v.Value, "{{") {
				r.errs.Addf(r.at(v), "%s: templates are not supported: use literal values, with one policy per environment", path)
			}
		})
		if r.dropFaulty(o, scalarField(o, "kind"), before, set); len(r.errs) == before {
			r.readObject(o)
		}
	}
	if !strings.EqualFold(action, "enforce") {
		r.addInformWarning(pos)
	}
}

// addInformWarning adds the warning for a policy that installs nothing.
func (r *reader) addInformWarning(pos diag.Pos) {
	r.set.Warnings = append(r.set.Warnings, diag.Warning{
		Pos: pos, Code: "policy-informs",
		Msg: "quayside installs the operator although remediationAction is inform: to prevent this, remove the policy from the declarations",
	})
}

func isOperatorPolicy(n *yamlnode.Node) bool {
	group, _, _ := strings.Cut(scalarField(n, "apiVersion"), "/")
	return group == string(OCM) && scalarField(n, "kind") == "OperatorPolicy"
}
