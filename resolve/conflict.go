package resolve

// Conflict is a set of declarations and requirements that cannot hold together.
type Conflict struct {
	Namespace string
}

// Conflicts is an error.
type Conflicts []*Conflict

func (c Conflicts) Error() string { return "conflict" }

func (b *builder) conflict(core []int) *Conflict { return &Conflict{Namespace: b.causes[core[0]].ns} }

func unique(cs []*Conflict) []*Conflict { return cs }
