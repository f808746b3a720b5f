package resolve

import "slices"

// relaxation says how much of what asks for something is given up so that the
// rest can be resolved (rule 4).
type relaxation int

const (
	demanded relaxation = iota // it is answered as it asks
	kept                       // only what is installed answers it; where nothing is, it is left out
	unheeded                   // what is installed stays, whatever it needs
	ignored                    // what is installed stands in nobody's way either
)

// party is who takes part in a conflict: a subscription, or something installed
// that nothing asks for.
type party struct {
	want *want
	inst *installed
}

// key names p in whatever state it is looked for.
func (p party) key() string {
	if p.want != nil {
		return p.want.key()
	}
	return "@" + p.inst.ns + "/" + p.inst.bundle
}

// relaxed is what has been given up so far in a round. Rule 4.
type relaxed map[party]relaxation

// of returns how much of p is given up. What nothing asks for never asked for
// more than to be kept.
func (r relaxed) of(p party) relaxation {
	if p.inst != nil {
		return max(r[p], kept)
	}
	return r[p]
}

// soften gives up what parties that a dependency generated ask for, and reports
// whether there were any: they are consequences, and no conflict is theirs. Rule 12.
func (r relaxed) soften(w *world, parties []party) bool {
	any := false
	for _, p := range parties {
		if p.want != nil && p.want.generated && w.named(p.want) == nil {
			r[p], any = kept, true
		}
	}
	return any
}

// relax gives up one more level of those parties to a conflict that have given up
// the least so far. So what is installed is kept, with all that it needs, as long
// as leaving out what is new is enough: a lock that was sound stays sound.
func (r relaxed) relax(parties []party) {
	least := ignored
	for _, p := range parties {
		least = min(least, r.of(p))
	}
	for _, p := range parties {
		if r.of(p) == least {
			r[p] = least + 1
		}
	}
}

// parties returns who takes part in a conflict.
func (b *builder) parties(core []int) []party {
	var out []party
	for _, tag := range core {
		switch c := b.causes[tag].(type) {
		case asking:
			out = append(out, party{want: c.want})
		case staying:
			out = append(out, party{inst: c.inst})
		}
	}
	return out
}

// within reports whether all of some are among others.
func within(some, others []party) bool {
	return !slices.ContainsFunc(some, func(p party) bool { return !slices.Contains(others, p) })
}
