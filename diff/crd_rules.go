package diff

// crdRules returns what can change in a custom resource definition. What the
// API server does is from apiextensions-apiserver and the Kubernetes API
// conventions ("api_changes"); ratcheting (objects stored before keep being
// accepted as long as the faulty part is not touched) since Kubernetes 1.30.
func crdRules() []Rule {
	const (
		refused  = "the API server refuses this update of the definition once it is established; the definition, and every object of it, would have to be deleted first"
		rejected = "objects that are stored already stay, but creating one, or changing the part that no longer fits, is refused; a GitOps sync of such an object fails"
		dropped  = "the API server drops what the schema does not name: the value disappears from stored objects at the next write, without a word"
		clients  = "nothing stored is refused, but clients that know the old form may meet values that they do not expect"
	)
	return []Rule{
		{"crd.scope-changed", Critical, "scope changed", refused},
		{"crd.kind-changed", Critical, "kind renamed", refused},
		{"crd.names-changed", Low, "short names, singular, list kind or categories changed", "scripts and kubectl calls that use the old name stop working"},
		{"crd.stored-version-removed", Critical, "storage version removed", "objects are stored in this version: the API server refuses the update while status.storedVersions names it, and without a migration nobody can read them; quayside resolve --upgrade takes such an upgrade in steps"},
		{"crd.served-version-removed", High, "served version removed", "manifests and clients at this version fail; the API server refuses the update if objects were ever stored in it and status.storedVersions still names it"},
		{"crd.version-unserved", High, "version no longer served", "manifests and clients at this version fail"},
		{"crd.version-added", Info, "version added", "clients may move to it"},
		{"crd.version-deprecated", Low, "version deprecated", "the API server warns on every use; a later release will stop serving it"},
		{"crd.version-differs", High, "new version does not hold what the stored one holds, and nothing converts", "with conversion strategy None the API server only renames apiVersion: what the new version's schema does not name is dropped"},
		{"crd.storage-version-changed", Low, "storage version changed", "existing objects stay stored in the old version until each is written again; the old version cannot be removed before that migration"},
		{"crd.conversion-changed", Medium, "conversion between versions changed", "objects of several versions depend on the conversion webhook: without it, or while it is down, reading them fails or fields are lost"},
		{"crd.preserve-changed", High, "spec.preserveUnknownFields turned off", dropped},
		{"crd.status-subresource-removed", High, "status subresource removed", "updates of /status fail, and status becomes part of what users and GitOps tools write"},
		{"crd.status-subresource-added", Medium, "status subresource added", "status in manifests is ignored from now on, and writers need permission on the subresource"},
		{"crd.scale-subresource-removed", Medium, "scale subresource removed", "kubectl scale and autoscalers stop working on these objects"},
		{"crd.scale-subresource-changed", Low, "scale subresource reads other fields", "autoscalers read and write another field"},
		{"crd.selectable-field-removed", Medium, "selectable field removed", "lists that select by this field are refused"},
		{"crd.field-removed", High, "field removed", dropped},
		{"crd.fields-added", Info, "fields added", "new fields are optional unless another finding says otherwise"},
		{"crd.map-removed", High, "free keys no longer allowed", dropped},
		{"crd.unknown-fields-pruned", High, "unknown fields no longer kept", dropped},
		{"crd.unknown-fields-kept", Info, "unknown fields kept", "typing errors in field names are no longer noticed"},
		{"crd.type-changed", High, "type changed", rejected},
		{"crd.type-widened", Low, "type widened", clients},
		{"crd.required-added", High, "field became required", rejected},
		{"crd.required-defaulted", Low, "field became required, and has a default", "objects without the field get the default"},
		{"crd.required-removed", Info, "field no longer required", clients},
		{"crd.enum-added", High, "values limited to a list", rejected},
		{"crd.enum-value-removed", High, "allowed value removed", rejected},
		{"crd.enum-value-added", Info, "allowed value added", clients},
		{"crd.enum-removed", Info, "values no longer limited", clients},
		{"crd.bound-tightened", Medium, "bound tightened", rejected},
		{"crd.bound-loosened", Info, "bound loosened", clients},
		{"crd.pattern-changed", Medium, "pattern added or changed", rejected},
		{"crd.pattern-removed", Info, "pattern removed", clients},
		{"crd.format-changed", Medium, "format added or changed", rejected},
		{"crd.format-removed", Info, "format removed", clients},
		{"crd.nullable-removed", Medium, "null no longer allowed", "an explicit null is refused, or dropped where the field has a default"},
		{"crd.nullable-added", Info, "null allowed", clients},
		{"crd.default-added", Low, "default added", "every object that leaves the field unset, stored ones too, now reads as if it were set"},
		{"crd.default-changed", Medium, "default changed", "every object that leaves the field unset, stored ones too, changes its meaning without an edit"},
		{"crd.default-removed", Medium, "default removed", "objects that leave the field unset no longer get a value"},
		{"crd.rule-added", Medium, "validation rule added", rejected},
		{"crd.rule-changed", Medium, "validation rule changed", rejected},
		{"crd.rule-removed", Info, "validation rule removed", clients},
		{"crd.combination-changed", Medium, "allOf, anyOf, oneOf or not changed", rejected},
		{"crd.combination-removed", Info, "allOf, anyOf, oneOf or not removed", clients},
		{"crd.list-type-changed", Medium, "list type or its keys changed", "elements must be unique by the new keys, and server-side apply merges and owns the list in another way: entries may appear twice or disappear"},
		{"crd.map-type-changed", Low, "map type changed", "server-side apply owns the map as a whole where it owned single keys, or the other way round"},
		{"crd.embedded-changed", Medium, "embedded resource changed", "the API server requires and validates apiVersion, kind and metadata of an embedded resource, and keeps them"},
	}
}
