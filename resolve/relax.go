package resolve

import "slices"

// relaxation is the degree to which a subscription or an installed bundle is ignored after a conflict, so that
// the other subscriptions can be resolved (rule 4). Each level includes the effects of all lower levels.
type relaxation int

const (
	notRelaxed          relaxation = iota // the subscription must be satisfied as declared
	keptInstalled                         // the installed bundle satisfies the subscription; a subscription without one is omitted
	requirementsIgnored                   // the requirements of the installed bundle are ignored
	fullyIgnored                          // the installed bundle no longer excludes bundles with the same package or APIs
)

// party is a subscription, or an installed bundle without a subscription, that takes part in a
// conflict.
type party struct {
	want *want
	inst *installed
}

// key returns a string that identifies the same party in every state.
func (p party) key() string {
	if p.want != nil {
		return p.want.key()
	}
	return "@" + p.inst.ns + "/" + p.inst.bundle
}

// relaxations maps each party to its current relaxation in a round. It implements Rule 4 of the package comment.
type relaxations map[party]relaxation

// level returns the relaxation of p. For an installed bundle without a subscription, the result is at least
// keptInstalled.
func (r relaxations) level(p party) relaxation {
	if p.inst != nil {
		return max(r[p], keptInstalled)
	}
	return r[p]
}

// relaxGenerated relaxes the dependencies among the parties, except upgrade targets, and reports whether it
// relaxed any. It is called before relax: a dependency exists only for other operators, so it must not cause a
// conflict. It implements Rule 12 of the package comment.
func (r relaxations) relaxGenerated(w *world, parties []party) bool {
	any := false
	for _, p := range parties {
		if p.want != nil && p.want.generated && w.targetOf(p.want) == nil {
			r[p], any = keptInstalled, true
		}
	}
	return any
}

// relax raises the lowest relaxation among the parties by one level. The first level only omits new operators.
// Installed bundles and their requirements are ignored at higher levels, which are needed only if a conflict
// remains. So a valid lock remains valid.
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

// parties returns the parties of the conflict that an unsatisfiable core describes.
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

// isSubset reports whether whole contains all elements of part.
func isSubset(part, whole []party) bool {
	return !slices.ContainsFunc(part, func(p party) bool { return !slices.Contains(whole, p) })
}
