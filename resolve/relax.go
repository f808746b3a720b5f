package resolve

import "slices"

// relaxation is the degree to which a subscription or an installed bundle is ignored, so that the
// others can be resolved (rule 4). Each level includes the levels below it.
type relaxation int

const (
	notRelaxed          relaxation = iota // must be satisfied as declared
	keptInstalled                         // satisfied by the installed bundle, or omitted
	requirementsIgnored                   // the requirements of the installed bundle are ignored
	fullyIgnored                          // the installed bundle does not exclude other bundles
)

// party is a participant in a conflict: a subscription, or an installed bundle without a
// subscription.
type party struct {
	want *want
	inst *installed
}

// key identifies p across states.
func (p party) key() string {
	if p.want != nil {
		return p.want.key()
	}
	return "@" + p.inst.ns + "/" + p.inst.bundle
}

// relaxations maps each party to its relaxation so far in a round. It implements Rule 4.
type relaxations map[party]relaxation

// level returns the relaxation of p. For an installed bundle without a subscription it is at least
// keptInstalled.
func (r relaxations) level(p party) relaxation {
	if p.inst != nil {
		return max(r[p], keptInstalled)
	}
	return r[p]
}

// relaxGenerated relaxes the generated subscriptions among the parties, except upgrade targets, and
// reports whether there were any. Generated subscriptions only result from dependencies, so they
// must not cause a conflict of their own. It implements Rule 12.
func (r relaxations) relaxGenerated(w *world, parties []party) bool {
	any := false
	for _, p := range parties {
		if p.want != nil && p.want.generated && w.targetOf(p.want) == nil {
			r[p], any = keptInstalled, true
		}
	}
	return any
}

// relax raises the relaxation of the least relaxed parties by one level. New operators are dropped
// first. Installed bundles and their dependencies are relaxed only if that is not enough, so that a
// valid lock remains valid.
func (r relaxations) relax(parties []party) {
	least := fullyIgnored
	for _, p := range parties {
		least = min(least, r.level(p))
	}
	for _, p := range parties {
		if r.level(p) == least {
			r[p] = least + 1
		}
	}
}

// parties returns the participants in a conflict.
func (b *builder) parties(core []int) []party {
	var out []party
	for _, tag := range core {
		switch c := b.causes[tag].(type) {
		case requestCause:
			out = append(out, party{want: c.want})
		case installedCause:
			out = append(out, party{inst: c.inst})
		}
	}
	return out
}

// isSubset reports whether whole contains all of part.
func isSubset(part, whole []party) bool {
	return !slices.ContainsFunc(part, func(p party) bool { return !slices.Contains(whole, p) })
}
