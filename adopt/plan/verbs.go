package plan

import "github.com/quayside/quayside/internal/kobj"

// verb is what is to be known of one sort of actions.
type verb struct {
	do     Verb
	needs  []string // fields that must say something
	may    []string // fields that may
	makes  bool     // it may make an object that is not there
	rights []string // what it takes to do it to an object that is there

	kubectl func(p *Plan, a Action, rendered kobj.Object) string
}

// verbs lists them.
func verbs() []verb {
	change, remove := []string{"get", "patch"}, []string{"get", "delete"}
	kept := noKubectl("quayside adopt revert makes it as it was written to a file, below backup/ in the plan's journal")
	return []verb{
		{do: Annotate, may: []string{"set", "unset"}, rights: change, kubectl: kubectlAnnotate},
		{do: Apply, may: []string{"force", "set"}, makes: true, rights: change, kubectl: kubectlApply},
		{do: Keep, rights: []string{"get"}, kubectl: kubectlKeep},
		{do: Create, makes: true, rights: []string{"get"}, kubectl: kept},
		{do: Delete, rights: remove, kubectl: kubectlDelete},
		{do: Orphan, rights: remove, kubectl: kubectlOrphan},
		{do: Restore, rights: change, kubectl: kept},
		{do: Scale, may: []string{"from", "to"}, rights: change, kubectl: kubectlScale},
		{do: TakeOver, rights: change, kubectl: noKubectl("kubectl has no command that takes over OLM's fields; without it OLM's labels stay")},
		{do: Unfinalize, needs: []string{"finalizer"}, may: []string{"unset"}, rights: change, kubectl: kubectlUnfinalize},
		{do: Unlabel, needs: []string{"unset"}, rights: change, kubectl: kubectlUnlabel},
	}
}

// verbOf returns what is to be known of a verb.
func verbOf(do Verb) (verb, bool) {
	for _, v := range verbs() {
		if v.do == do {
			return v, true
		}
	}
	return verb{}, false
}
