package diff

// crdRules returns the rules for changes of CRDs. They follow the validation in
// apiextensions-apiserver and the Kubernetes API conventions ("api_changes"). Since Kubernetes
// 1.30, the API server accepts an update of an invalid stored object if the invalid part does not
// change (ratcheting).
func crdRules() []RuleInfo {
	const (
		refused  = "the API server refuses this update of an established CRD; the CRD, with every object of it, would have to be deleted first"
		rejected = "existing objects are kept, but new objects and changes of the invalid part are refused; a GitOps sync of such an object fails"
		dropped  = "the API server silently prunes fields that are not in the schema: stored objects lose the value at the next write"
		clients  = "stored objects stay valid, but clients written for the old schema may read values that they do not expect"
	)
	return []RuleInfo{
		{"crd.scope-changed", Critical, "scope changed", refused},
		{"crd.kind-changed", Critical, "kind renamed", refused},
		{"crd.names-changed", Low, "short names, singular, list kind or categories changed", "scripts and kubectl calls that use the old name stop working"},
		{"crd.stored-version-removed", Critical, "storage version removed", "objects are stored in this version: the API server refuses the update while status.storedVersions contains it, and without a migration the objects cannot be read; 'quayside resolve --upgrade' splits such an upgrade into steps"},
		{"crd.served-version-removed", High, "served version removed", "manifests and clients at this version fail; the API server refuses the update while status.storedVersions contains the version"},
		{"crd.version-unserved", High, "version no longer served", "manifests and clients at this version fail"},
		{"crd.version-added", Info, "version added", "clients may use it"},
		{"crd.version-deprecated", Low, "version deprecated", "the API server warns on every use; a later release will stop serving it"},
		{"crd.version-differs", High, "new version lacks fields of the stored version, and there is no conversion webhook", "with conversion strategy None the API server only changes apiVersion: fields that the new version's schema does not have are pruned"},
		{"crd.storage-version-changed", Low, "storage version changed", "existing objects stay stored in the old version until each is rewritten; the old version cannot be removed before that migration"},
		{"crd.conversion-changed", Medium, "conversion between versions changed", "objects of several versions depend on the conversion webhook: without it, or while it is down, reads fail or fields are lost"},
		{"crd.preserve-changed", High, "spec.preserveUnknownFields turned off", dropped},
		{"crd.status-subresource-removed", High, "status subresource removed", "updates of /status fail, and status becomes writable for users and GitOps tools"},
		{"crd.status-subresource-added", Medium, "status subresource added", "status in manifests is ignored, and writers need permission on the subresource"},
		{"crd.scale-subresource-removed", Medium, "scale subresource removed", "kubectl scale and autoscalers stop working on these objects"},
		{"crd.scale-subresource-changed", Low, "scale subresource reads different fields", "autoscalers read and write different fields"},
		{"crd.selectable-field-removed", Medium, "selectable field removed", "list requests with this field selector are refused"},
		{"crd.field-removed", High, "field removed", dropped},
		{"crd.fields-added", Info, "fields added", "new fields are optional unless another finding says otherwise"},
		{"crd.map-removed", High, "additional properties no longer allowed", dropped},
		{"crd.unknown-fields-pruned", High, "unknown fields pruned", dropped},
		{"crd.unknown-fields-kept", Info, "unknown fields preserved", "misspelled field names are no longer reported"},
		{"crd.type-changed", High, "type changed", rejected},
		{"crd.type-widened", Low, "type widened", clients},
		{"crd.required-added", High, "field became required", rejected},
		{"crd.required-defaulted", Low, "field became required, with a default", "objects without the field get the default"},
		{"crd.required-removed", Info, "field no longer required", clients},
		{"crd.enum-added", High, "values restricted to an enum", rejected},
		{"crd.enum-value-removed", High, "allowed value removed", rejected},
		{"crd.enum-value-added", Info, "allowed value added", clients},
		{"crd.enum-removed", Info, "values no longer restricted", clients},
		{"crd.bound-tightened", Medium, "bound tightened", rejected},
		{"crd.bound-loosened", Info, "bound loosened", clients},
		{"crd.pattern-changed", Medium, "pattern added or changed", rejected},
		{"crd.pattern-removed", Info, "pattern removed", clients},
		{"crd.format-changed", Medium, "format added or changed", rejected},
		{"crd.format-removed", Info, "format removed", clients},
		{"crd.nullable-removed", Medium, "null no longer allowed", "an explicit null is refused, or replaced by the default"},
		{"crd.nullable-added", Info, "null allowed", clients},
		{"crd.default-added", Low, "default added", "every object without the field, stored ones included, is now read with the default"},
		{"crd.default-changed", Medium, "default changed", "every object without the field, stored ones included, changes its meaning without an edit"},
		{"crd.default-removed", Medium, "default removed", "objects without the field no longer get a value"},
		{"crd.rule-added", Medium, "validation rule added", rejected},
		{"crd.rule-changed", Medium, "validation rule changed", rejected},
		{"crd.rule-removed", Info, "validation rule removed", clients},
		{"crd.combination-changed", Medium, "allOf, anyOf, oneOf or not changed", rejected},
		{"crd.combination-removed", Info, "allOf, anyOf, oneOf or not removed", clients},
		{"crd.list-type-changed", Medium, "list type or its keys changed", "elements must be unique by the new keys, and server-side apply merges the list differently: entries may be duplicated or removed"},
		{"crd.map-type-changed", Low, "map type changed", "server-side apply changes between owning the whole map and owning single keys"},
		{"crd.embedded-changed", Medium, "embedded resource changed", "the API server requires, validates and preserves apiVersion, kind and metadata of an embedded resource"},
	}
}
