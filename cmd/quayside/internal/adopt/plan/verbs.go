package plan

import "github.com/quayside/quayside/internal/k8s"

// verb describes one kind of action.
type verb struct {
	do          Verb
	required    []string // required fields
	optional    []string // optional fields
	canCreate   bool     // whether it can create an object
	permissions []string // permissions for an existing object

	kubectl func(p *Plan, a Action, rendered k8s.Object) string
}

// verbTable returns all verbs.
func verbTable() []verb {
	change, remove := []string{"get", "patch"}, []string{"get", "delete"}
	kept := noKubectl("'quayside adopt revert' restores it from its file below backup/ in the plan's journal")
	return []verb{
		{do: Annotate, optional: []string{"set", "unset"}, permissions: change, kubectl: kubectlMetadata},
		{do: Apply, optional: []string{"force", "set"}, canCreate: true, permissions: change, kubectl: kubectlApply},
		{do: Save, permissions: []string{"get"}, kubectl: kubectlSave},
		{do: Create, canCreate: true, permissions: []string{"get"}, kubectl: kept},
		{do: Delete, permissions: remove, kubectl: kubectlDelete},
		{do: Orphan, permissions: remove, kubectl: kubectlOrphan},
		{do: RestartPods, permissions: change, kubectl: kubectlRestart},
		{do: Restore, permissions: change, kubectl: kept},
		{do: Scale, optional: []string{"from", "to"}, permissions: change, kubectl: kubectlScale},
		{do: TransferFields, permissions: change, kubectl: noKubectl("kubectl has no command for taking ownership of OLM's fields; without it OLM's labels stay")},
		{do: Unfinalize, required: []string{"finalizer"}, optional: []string{"unset"}, permissions: change, kubectl: kubectlUnfinalize},
		{do: Disown, required: []string{"owner"}, optional: []string{"index"}, permissions: change, kubectl: kubectlDisown},
		{do: Unlabel, required: []string{"unset"}, permissions: change, kubectl: kubectlMetadata},
	}
}

// verbOf returns the description of a verb; false if it is unknown.
func verbOf(do Verb) (verb, bool) {
	for _, v := range verbTable() {
		if v.do == do {
			return v, true
		}
	}
	return verb{}, false
}
