package plan

// verb is what is to be known of one sort of actions.
type verb struct {
	do     Verb
	needs  []string // fields that must say something
	may    []string // fields that may
	makes  bool     // it may make an object that is not there
	rights []string // what it takes to do it to an object that is there
}

// verbs lists them.
func verbs() []verb {
	change, remove := []string{"get", "patch"}, []string{"get", "delete"}
	return []verb{
		{do: Annotate, may: []string{"set", "unset"}, rights: change},
		{do: Apply, may: []string{"force"}, makes: true, rights: change},
		{do: Keep, rights: []string{"get"}},
		{do: Create, makes: true, rights: []string{"get"}},
		{do: Delete, rights: remove},
		{do: Orphan, rights: remove},
		{do: Restore, rights: change},
		{do: Scale, may: []string{"from", "to"}, rights: change},
		{do: TakeOver, rights: change},
		{do: Unfinalize, needs: []string{"finalizer"}, may: []string{"unset"}, rights: change},
		{do: Unlabel, needs: []string{"unset"}, rights: change},
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
