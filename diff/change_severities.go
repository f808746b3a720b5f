package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// changeTable contains severities for changed fields that no other rule reports.
type changeTable struct {
	applies   func(fieldChange) bool
	rows      []changeSeverity // the first matching row applies
	otherwise Severity         // severity if no row matches; Off means the severity for the kind of the object
}

// changeSeverity is a row of a changeTable.
type changeSeverity struct {
	kinds    []string // group kinds of the object; nil means any
	fields   func(fieldChange) bool
	severity Severity
}

// changeTables returns all tables, in order. The first table that applies to a change determines
// its severity.
func changeTables() []changeTable {
	return []changeTable{
		{applies: func(f fieldChange) bool { return f.path.key(0) == "metadata" }, rows: metadataChanges(), otherwise: Info},
		{applies: fieldChange.isInPod, rows: podChanges(), otherwise: Medium},
		{applies: fieldChange.isOfEngine, rows: engineChanges(), otherwise: High},
		{applies: func(fieldChange) bool { return true }, rows: kindChanges()},
	}
}

// changedSeverity returns the severity of a changed field that no other rule reports.
func (c *comparison) changedSeverity(p pair, ch change) Severity {
	f := fieldChange{c, p, ch}
	for _, table := range changeTables() {
		if !table.applies(f) {
			continue
		}
		for _, row := range table.rows {
			if (row.kinds == nil || f.isOf(row.kinds...)) && row.fields(f) {
				return row.severity
			}
		}
		if table.otherwise != Off {
			return table.otherwise
		}
	}
	if p.before == nil {
		return c.addedSeverity(p.after)
	}
	return c.kindSeverityOf(p.after).changed
}

// metadataChanges are the severities of changes in the metadata of an object.
func metadataChanges() []changeSeverity {
	return []changeSeverity{
		{nil, func(f fieldChange) bool { return len(f.path) < 3 }, Medium}, // a whole field of metadata, such as all finalizers
		{nil, fieldChange.isOwnerOrFinalizer, Medium},
		{nil, func(f fieldChange) bool {
			_, name := f.path.metadataEntry()
			return f.objects.before != nil && strings.Contains(name, "aggregate-to-") // the family "rbac" rates added roles
		}, Medium},
	}
}

// podChanges are the severities of changes in a pod template. Fields that are not known to be harmless
// are medium.
func podChanges() []changeSeverity {
	return []changeSeverity{
		{nil, fieldChange.isHardening, Info},
		{nil, func(f fieldChange) bool { return f.changesPodField("exec", "podCertificate") }, High},
		{nil, func(f fieldChange) bool { return f.changesPodField("image", "secret", "secretRef", "secretKeyRef") }, Medium},
		{nil, fieldChange.isHarmlessInPod, Info},
	}
}

// isHarmlessInPod reports whether the change affects only harmless fields of a pod or container. A field is harmless
// if its change gives no access to containers and cannot schedule the pod on a control plane node. Volumes, commands,
// variables and references to Secrets count as harmless here, because other rules compare them.
func (f fieldChange) isHarmlessInPod() bool {
	below := f.path[len(f.podAt()):]
	field, harmless := below.key(0), strings.Fields("activeDeadlineSeconds affinity enableServiceLinks hostname imagePullSecrets nodeSelector os overhead preemptionPolicy readinessGates restartPolicy "+
		"serviceAccount serviceAccountName setHostnameAsFQDN subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes")
	if slices.Contains(k8s.ContainerLists(), field) {
		if len(below) < 3 {
			return true // the order or the name of containers; rule pods.container reports the rest
		}
		field = below.key(2)
		harmless = strings.Fields("args command env envFrom imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources restartPolicy restartPolicyRules startupProbe stdin stdinOnce " +
			"terminationMessagePath terminationMessagePolicy tty volumeMounts")
		return slices.Contains(harmless, field) && !f.changesPodField("host")
	}
	value := formatValue(f.after)
	everywhere := field == "tolerations" && strings.Contains(value, `"Exists"`) && !strings.Contains(value, `"key"`)
	return slices.Contains(harmless, field) && !everywhere && !strings.Contains(f.path.String()+value, "node-role.kubernetes.io")
}

// kindChanges are the severities of changes that depend on the kind of the object.
func kindChanges() []changeSeverity {
	const rbac = ".rbac.authorization.k8s.io"
	crd, service := []string{crdKind}, []string{"Service"}
	return []changeSeverity{
		{webhookKinds(), fieldChange.isComparedWebhookField, Low},
		{webhookKinds(), fieldChange.isOwnWebhookService, Low},
		{crd, fieldChange.isOwnConversionService, Low},
		{crd, func(f fieldChange) bool { return f.isConversion() && f.path.last() == "conversionReviewVersions" }, Low},
		{crd, func(f fieldChange) bool { return f.isConversion() && !f.hasConversionWebhook() }, Low}, // rule crd.conversion-changed reports the strategy
		{crd, fieldChange.isConversion, High},
		{crd, func(f fieldChange) bool {
			field := f.path.crdVersionField()
			return field == "schema" || field == "additionalPrinterColumns"
		}, Info},
		{service, fieldChange.isServiceTarget, Medium},
		{[]string{"ServiceAccount"}, func(f fieldChange) bool { return f.path.key(0) == "automountServiceAccountToken" && f.after != false }, Medium},
		{[]string{"ClusterRole" + rbac}, func(f fieldChange) bool { return f.objects.before != nil && f.path.key(0) == "aggregationRule" }, High},
		{nil, func(f fieldChange) bool { return strings.HasPrefix(f.objects.after.Key().Group, "rbac.") }, Low},
	}
}

// isOwnerOrFinalizer reports whether the changed field is an owner reference or a finalizer of the
// object.
func (f fieldChange) isOwnerOrFinalizer() bool {
	field, _ := f.path.metadataEntry()
	return field == "ownerReferences" || field == "finalizers"
}

// isInPod reports whether the changed field is in the pod spec of the object.
func (f fieldChange) isInPod() bool {
	return f.podAt() != nil
}

// podAt returns the path of the pod spec that the changed field is in, or nil.
func (f fieldChange) podAt() fieldPath {
	for _, p := range podsOf(f.objects.after) {
		if f.path.isIn(p.at) {
			return p.at
		}
	}
	return nil
}

// isHardening reports whether the change sets a security setting of a pod to its strictest value.
func (f fieldChange) isHardening() bool {
	text := f.path.String()
	text = text[strings.LastIndexByte(text, '.')+1:] + "=" + formatValue(f.after)
	return slices.Contains([]string{
		`seccompProfile={"type":"RuntimeDefault"}`, "type=RuntimeDefault", "runAsNonRoot=true", "allowPrivilegeEscalation=false", "readOnlyRootFilesystem=true",
		"privileged=false", `drop=["ALL"]`, `capabilities={"drop":["ALL"]}`, "automountServiceAccountToken=false", "hostUsers=false",
	}, text)
}

// changesPodField reports whether the path of the change, below the pod spec, contains one of the given fields,
// or whether the old or the new value contains one of them.
func (f fieldChange) changesPodField(fields ...string) bool {
	at := f.podAt()
	found := slices.ContainsFunc(f.path[len(at):], func(s step) bool { return s.by == "" && slices.Contains(fields, s.key) })
	for _, v := range []any{f.before, f.after} {
		forEachField(v, "", func(_, name string, _ any) { found = found || slices.Contains(fields, name) })
	}
	return found
}

// isComparedWebhookField reports whether the rules of the family "webhook" compare the changed
// field. If these rules report nothing, the change has no effect: a default became explicit, or
// items were reordered.
func (f fieldChange) isComparedWebhookField() bool {
	_, field := f.path.element("webhooks")
	return slices.Contains([]string{"", "admissionReviewVersions", "failurePolicy", "matchPolicy", "objectSelector", "namespaceSelector", "reinvocationPolicy", "rules", "sideEffects", "timeoutSeconds"}, field)
}

// isOwnWebhookService reports whether the change is in the client configuration of a webhook that calls a
// Service of the same operator. It returns false for a change of the CA bundle.
func (f fieldChange) isOwnWebhookService() bool {
	name, _ := f.path.element("webhooks")
	var config map[string]any
	for _, h := range k8s.Items(f.objects.after.Content, "webhooks") {
		if k8s.Text(h, "name") == name {
			config = k8s.Map(h, "clientConfig")
		}
	}
	return f.path.contains("clientConfig") && f.path.last() != "caBundle" && f.c.isOwnService(f.objects.after, config)
}

// isOwnConversionService reports whether the change is in spec.conversion of a CRD whose conversion webhook
// calls a Service of the same operator. It returns false for a change of the CA bundle.
func (f fieldChange) isOwnConversionService() bool {
	return f.isConversion() && f.path.last() != "caBundle" &&
		f.c.isOwnService(f.objects.after, k8s.Map(f.objects.after.Content, "spec", "conversion", "webhook", "clientConfig"))
}

func (f fieldChange) isConversion() bool { return f.path.contains("conversion") }

func (f fieldChange) hasConversionWebhook() bool {
	return k8s.At(f.objects.after.Content, "spec", "conversion", "webhook") != nil
}

// isServiceTarget reports whether the change of an existing Service may send its traffic to other pods, or
// admit other clients.
func (f fieldChange) isServiceTarget() bool {
	return f.objects.before != nil && (f.path.key(1) == "selector" || f.path.key(1) == "loadBalancerSourceRanges")
}
