package resolve

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// cause is what a tag of the solver's problem stands for, in terms of operators.
// Constraints of equal causes share a tag: they hold or are given up together.
// Rule 2.
type cause interface {
	order() causeOrder
	about() fact
	where() string                   // the place in a file that it points at, or ""
	tell(t *teller, of []int) string // of: the atoms that can meet it, or that it holds apart
}

// fact is what a cause is about, and what most causes are: true, whoever asks for
// what.
type fact struct {
	ns     string
	bundle string // empty: of the namespace
}

func (f fact) order() causeOrder { return whatForbids }
func (f fact) about() fact       { return f }
func (f fact) where() string     { return "" }

// causeOrder is the order in which causes are listed.
type causeOrder int

const (
	whoAsks causeOrder = iota
	whatIsThere
	whatIsNeeded
	whatForbids
)

// asking: a subscription must be answered.
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
		return c.want.asked().String()
	}
	return ""
}

func (c asking) tell(t *teller, of []int) string {
	s := c.want
	if c.fault != nil {
		return "subscription " + s.key() + ": " + c.fault.msg
	}
	text := s.title() + " asks for package " + s.pkg
	if len(s.channels) > 0 {
		text += ", channel " + strings.Join(s.channels, " or ")
	}
	if s.cat != nil {
		text += ", from catalog " + s.cat.String()
	}
	if n := t.b.w.bound(s); n != nil {
		text += ", and " + n.At.String() + " for version " + n.Version
	}
	switch names := t.names(of); len(names) {
	case 0:
		return text + ": nothing answers it"
	case 1:
		return text + ": only " + names[0] + " answers it"
	default:
		return text + ": " + list(names) + " answer it"
	}
}

// staying: what is installed and no subscription asks for stays.
type staying struct {
	fact
	inst *installed
}

func (c staying) order() causeOrder { return whatIsThere }
func (c staying) where() string     { return c.inst.where() }

func (c staying) tell(*teller, []int) string {
	return c.inst.bundle + " is installed in namespace " + c.inst.ns + " and no subscription asks for it, so it stays"
}

// where returns the place of what says that i is installed, or "".
func (i *installed) where() string {
	switch {
	case i.csv != nil:
		return i.csv.Pos.String()
	case i.pin != nil:
		return i.pin.Pos.String()
	}
	return ""
}

// needing: a bundle requires something.
type needing struct {
	fact
	req *requirement
}

func (c needing) order() causeOrder { return whatIsNeeded }

func (c needing) tell(t *teller, of []int) string { return t.requires([]string{c.bundle}, c.req, of) }

// banning: a bundle cannot be chosen.
type banning struct {
	fact
	pkg string
	why ban
}

// ban is why a bundle cannot be chosen; the zero value is no ban.
type ban struct {
	kind banKind
	text string // "is deprecated (olm.deprecated)"
	kube string // the version of Kubernetes that would do; empty: none
}

type banKind int

const (
	banUnusable    banKind = iota + 1 // its properties cannot be read (rule 4)
	banDeprecated                     // olm.deprecated
	banInstallMode                    // it does not support what its OperatorGroup wants (rule 7)
	banCluster                        // the cluster's version is too low or too high (rule 7)
	banOtherLock                      // the lock to follow pins another
	banPinned                         // another bundle of the package is pinned, and no way leads from that (rule 12)
	banUnanswered                     // its subscription could not be answered (rule 4)
)

func (c banning) tell(*teller, []int) string { return c.bundle + " " + c.why.text }

// onePackage: a namespace holds one bundle of a package.
type onePackage struct {
	fact
	pkg string
}

func (c onePackage) tell(t *teller, of []int) string {
	return fmt.Sprintf("namespace %s holds at most one bundle of package %s, not %s", c.ns, c.pkg, t.both(of))
}

// oneProvider: a namespace holds one provider of an API.
type oneProvider struct {
	fact
	api catalog.GVK
}

func (c oneProvider) tell(t *teller, of []int) string {
	return fmt.Sprintf("namespace %s holds at most one provider of the API %s, not %s", c.ns, c.api, t.both(of))
}

// succeeding: an upgrade takes the place of what is installed.
type succeeding struct {
	fact
	inst *installed
}

func (c succeeding) tell(*teller, []int) string {
	return fmt.Sprintf("%s replaces %s: only one of them can be installed", c.bundle, c.inst.bundle)
}

// bothProvide: one API from two installs that watch a common namespace (rule 10).
type bothProvide struct {
	fact
	other string
	api   catalog.GVK
}

func (c bothProvide) tell(*teller, []int) string {
	return fmt.Sprintf("the API %s would be provided in namespaces %s and %s, which watch the same namespaces", c.api, c.ns, c.other)
}
