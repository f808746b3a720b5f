package resolve

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/model"
)

// cause is the meaning of a tag of the solver's problem, in terms of operators. Constraints of
// equal causes share a tag, so they are kept or dropped together. Rule 2.
type cause interface {
	order() causeOrder
	about() fact
	where() string                       // position in a file, or ""
	describe(t *teller, of []int) string // of: the atoms that can meet it, or that it excludes from each other
}

// fact is the subject of a cause. By default, a cause is a fact that does not depend on any
// declaration.
type fact struct {
	ns     string
	bundle string // empty: the namespace itself
}

func (f fact) order() causeOrder { return whatForbids }
func (f fact) about() fact       { return f }
func (f fact) where() string     { return "" }

// causeOrder is the order of causes in an explanation.
type causeOrder int

const (
	whoAsks causeOrder = iota
	whatIsThere
	whatIsNeeded
	whatForbids
)

// asking is the cause that a subscription needs an answer.
type asking struct {
	fact
	want  *want
	fault *fault // why nothing answers it
}

func (c asking) order() causeOrder { return whoAsks }

func (c asking) where() string {
	switch {
	case c.fault != nil && !c.fault.pos.IsZero():
		return c.fault.pos.String()
	case c.want.decl != nil:
		return c.want.requestPos().String()
	}
	return ""
}

func (c asking) describe(t *teller, of []int) string {
	s := c.want
	if c.fault != nil {
		return "subscription " + s.key() + ": " + c.fault.msg
	}
	text := s.title() + " requests package " + s.pkg
	if len(s.channels) > 0 {
		text += ", channel " + strings.Join(s.channels, " or ")
	}
	if s.cat != nil {
		text += ", from catalog " + s.cat.String()
	}
	if n := t.b.w.boundTarget(s); n != nil {
		text += ", and " + n.At.String() + " for version " + n.Version
	}
	switch names := t.names(of); len(names) {
	case 0:
		return text + ": no candidate"
	case 1:
		return text + ": only " + names[0] + " matches"
	default:
		return text + ": " + list(names) + " match"
	}
}

// staying is the cause that an installed bundle without a subscription stays.
type staying struct {
	fact
	inst *installed
}

func (c staying) order() causeOrder { return whatIsThere }
func (c staying) where() string     { return c.inst.where() }

func (c staying) describe(*teller, []int) string {
	return c.inst.bundle + " is installed in namespace " + c.inst.ns + "; it remains pinned, although no subscription requests it"
}

// where returns the position of the ClusterServiceVersion or the pin of i, or "".
func (i *installed) where() string {
	switch {
	case i.csv != nil:
		return i.csv.Pos.String()
	case i.pin != nil:
		return i.pin.Pos.String()
	}
	return ""
}

// needing is the cause that a bundle has a requirement.
type needing struct {
	fact
	req *requirement
}

func (c needing) order() causeOrder { return whatIsNeeded }

func (c needing) describe(t *teller, of []int) string {
	return t.requires([]string{c.bundle}, c.req, of)
}

// banning is the cause that a bundle cannot be chosen.
type banning struct {
	fact
	pkg string
	why ban
}

// ban is the reason why a bundle cannot be chosen. The zero value means that it can be chosen.
type ban struct {
	kind banKind
	text string // "is deprecated (olm.deprecated)"
	kube string // the version of Kubernetes that it needs; empty: irrelevant
}

type banKind int

const (
	banUnusable    banKind = iota + 1 // malformed properties (rule 4)
	banDeprecated                     // olm.deprecated
	banInstallMode                    // its OperatorGroup needs an unsupported install mode (rule 7)
	banCluster                        // the cluster's version is too low or too high (rule 7)
	banOtherLock                      // the followed lock pins another
	banAgainst                        // Options.Against refuses it
	banPinned                         // another bundle of the package is pinned and has no edge to it (rule 12)
	banUnanswered                     // its subscription could not be answered, or excludes it (rule 4)
)

func (c banning) describe(*teller, []int) string { return c.bundle + " " + c.why.text }

// onePackage is the cause that a namespace holds one bundle of a package.
type onePackage struct {
	fact
	pkg string
}

func (c onePackage) describe(t *teller, of []int) string {
	return fmt.Sprintf("namespace %s can have only one bundle of package %s, not %s", c.ns, c.pkg, t.takingPart(of))
}

// oneProvider is the cause that a namespace holds one provider of an API.
type oneProvider struct {
	fact
	api model.GVK
}

func (c oneProvider) describe(t *teller, of []int) string {
	return fmt.Sprintf("namespace %s can have only one provider of the API %s, not %s", c.ns, c.api, t.takingPart(of))
}

// succeeding is the cause that an upgrade replaces an installed bundle.
type succeeding struct {
	fact
	inst *installed
}

func (c succeeding) describe(*teller, []int) string {
	return fmt.Sprintf("%s replaces %s: only one of them can be installed", c.bundle, c.inst.bundle)
}

// bothProvide is the cause that two installs that watch a common namespace provide the same API
// (rule 10).
type bothProvide struct {
	fact
	other string
	api   model.GVK
}

func (c bothProvide) describe(*teller, []int) string {
	return fmt.Sprintf("namespaces %[2]s and %[3]s would both provide the API %[1]s to the same watched namespaces", c.api, c.ns, c.other)
}
