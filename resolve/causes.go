package resolve

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// cause explains a constraint of the solver problem in terms of operators. Each cause has a tag in the problem.
// Constraints with equal causes have the same tag, so an unsatisfiable core contains either all of these
// constraints or none. Causes implement Rule 2.
type cause interface {
	order() causeOrder
	about() fact
	position() string                       // position in a file, or "" if there is none
	describe(t *explainer, of []int) string // explains the cause; of are the atoms of its constraint, of which at least one or at most one must be chosen
}

// fact is the bundle or namespace that a cause describes. Every cause embeds a fact. The methods of fact are
// the defaults for causes that do not result from a declaration.
type fact struct {
	ns     string
	bundle string // empty if the fact describes the namespace
}

func (f fact) order() causeOrder { return orderExclusion }
func (f fact) about() fact       { return f }
func (f fact) position() string  { return "" }

// causeOrder determines the order of causes in an explanation.
type causeOrder int

const (
	orderRequest causeOrder = iota
	orderInstalled
	orderRequirement
	orderExclusion
)

// requestCause means that a declared or generated subscription must be satisfied.
type requestCause struct {
	fact
	want  *want
	fault *fault // reason why the subscription has no candidates; nil if it has
}

func (c requestCause) order() causeOrder { return orderRequest }

func (c requestCause) position() string {
	switch {
	case c.fault != nil && !c.fault.pos.IsZero():
		return c.fault.pos.String()
	case c.want.decl != nil:
		return c.want.requestPos().String()
	}
	return ""
}

func (c requestCause) describe(t *explainer, of []int) string {
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
		return text + ": " + joinNames(names) + " match"
	}
}

// installedCause means that an installed bundle without a subscription must remain installed.
type installedCause struct {
	fact
	inst *installed
}

func (c installedCause) order() causeOrder { return orderInstalled }
func (c installedCause) position() string  { return c.inst.position() }

func (c installedCause) describe(*explainer, []int) string {
	return c.inst.bundle + " is installed in namespace " + c.inst.ns + "; it remains pinned, although no subscription requests it"
}

// position returns the position of the ClusterServiceVersion that declares i, or else of the pin of i, or else
// "".
func (i *installed) position() string {
	switch {
	case i.csv != nil:
		return i.csv.Pos.String()
	case i.pin != nil:
		return i.pin.Pos.String()
	}
	return ""
}

// requirementCause means that a bundle has a requirement.
type requirementCause struct {
	fact
	req *requirement
}

func (c requirementCause) order() causeOrder { return orderRequirement }

func (c requirementCause) describe(t *explainer, of []int) string {
	return t.describeRequirement([]string{c.bundle}, c.req, of)
}

// banCause means that a bundle cannot be chosen.
type banCause struct {
	fact
	pkg string
	why ban
}

// ban is the reason why a bundle cannot be chosen. The zero value means that the bundle can be chosen.
type ban struct {
	kind banKind
	text string // reason as the end of a sentence: "is deprecated (olm.deprecated)"
	kube string // version of Kubernetes that the bundle needs; empty for other reasons
}

type banKind int

const (
	banUnusable    banKind = iota + 1 // malformed properties (rule 4)
	banDeprecated                     // olm.deprecated
	banInstallMode                    // the bundle does not support the install mode that its OperatorGroup needs (rule 7)
	banCluster                        // the bundle does not support the version of the cluster (rule 7)
	banOtherLock                      // the upstream lock (Options.From) pins another bundle
	banObjection                      // Options.Objection rejects the bundle
	banPinned                         // another bundle of the package is pinned and has no upgrade edge to this one (rule 12)
	banUnsatisfied                    // the subscription to the package is omitted or does not allow the bundle (rule 4)
)

func (c banCause) describe(*explainer, []int) string { return c.bundle + " " + c.why.text }

// onePackageCause means that a namespace can have only one bundle of a package.
type onePackageCause struct {
	fact
	pkg string
}

func (c onePackageCause) describe(t *explainer, of []int) string {
	return fmt.Sprintf("namespace %s can have only one bundle of package %s, not %s", c.ns, c.pkg, t.listInvolved(of))
}

// oneProviderCause means that a namespace can have only one provider of an API.
type oneProviderCause struct {
	fact
	api catalog.GVK
}

func (c oneProviderCause) describe(t *explainer, of []int) string {
	return fmt.Sprintf("namespace %s can have only one provider of the API %s, but would have %s", c.ns, c.api, t.listInvolved(of))
}

// replacementCause means that an upgrade replaces an installed bundle, so that only one of the two bundles
// can be chosen.
type replacementCause struct {
	fact
	inst *installed
}

func (c replacementCause) describe(*explainer, []int) string {
	return fmt.Sprintf("%s replaces %s: only one of them can be installed", c.bundle, c.inst.bundle)
}

// overlapCause means that two installed bundles would provide an API to a namespace that both watch (rule 10).
type overlapCause struct {
	fact
	other string
	api   catalog.GVK
}

func (c overlapCause) describe(*explainer, []int) string {
	return fmt.Sprintf("operators in namespaces %[2]s and %[3]s would both provide the API %[1]s to the same watched namespaces", c.api, c.ns, c.other)
}
