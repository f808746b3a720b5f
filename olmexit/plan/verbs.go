package plan

import "github.com/quayside/quayside/internal/k8s"

// verb describes one kind of action.
type verb struct {
	do     Verb
	needs  []string // required fields
	may    []string // optional fields
	makes  bool     // whether it can create an object
	rights []string // permissions for an existing object

	kubectl func(p *Plan, a Action, rendered k8s.Object) string
}

// verbTable returns all verbs.
func verbTable() []verb {
	change, remove := []string{"get", "patch"}, []string{"get", "delete"}
	kept := noKubectl("'quayside adopt revert' restores it from its file below backup/ in the plan's journal")
	return []verb{
		{do: Annotate, may: []string{"set", "unset"}, rights: change, kubectl: kubectlMetadata},
		{do: Apply, may: []string{"force", "set"}, makes: true, rights: change, kubectl: kubectlApply},
		{do: Keep, rights: []string{"get"}, kubectl: kubectlKeep},
		{do: Create, makes: true, rights: []string{"get"}, kubectl: kept},
		{do: Delete, rights: remove, kubectl: kubectlDelete},
		{do: Orphan, rights: remove, kubectl: kubectlOrphan},
		{do: Renew, rights: change, kubectl: kubectlRestart},
		{do: Restore, rights: change, kubectl: kept},
		{do: Scale, may: []string{"from", "to"}, rights: change, kubectl: kubectlScale},
		{do: TakeOver, rights: change, kubectl: noKubectl("kubectl has no command for taking ownership of OLM's fields; without it OLM's labels stay")},
		{do: Unfinalize, needs: []string{"finalizer"}, may: []string{"unset"}, rights: change, kubectl: kubectlUnfinalize},
		{do: Unlabel, needs: []string{"unset"}, rights: change, kubectl: kubectlMetadata},
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
