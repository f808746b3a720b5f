package declare

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Unread is a part of the declared files that could not be read: an object, a file, a kustomization
// or the output of a generator.
type Unread struct {
	Pos    diag.Pos // position of the fault
	Reason string   // text of the fault, without its position
	Hint   string   // command or edit that fixes it; may be empty

	// Kind, Namespace, Name and Package of the object. They are empty if unknown.
	Kind, Namespace, Name, Package string

	// Build is the directory of the kustomization whose build failed, relative to the workspace. It is empty
	// if the part is not the result of a build.
	Build string

	// Tolerated is true if the part probably contains no declaration. Then the set has a warning
	// about it.
	Tolerated bool

	err     *diag.Error
	text    []byte // text of the files, as far as it is known
	partial bool   // whether text is incomplete
	entry   int    // index of the path in LoadOptions.Paths
}

// Declares reports whether the part is a declaration of an operator, or its text contains one.
func (u Unread) Declares() bool {
	return !u.Tolerated && isSubscriptionKind(u.Kind) || u.Tolerated && namesOLM(u.text)
}

// MayDeclare reports whether the part may be, or contain, the declaration of an operator with this
// namespace and name. If nothing is known about a part, it may contain any declaration.
func (u Unread) MayDeclare(namespace, name, pkg string) bool {
	switch {
	case u.Kind == "":
		return u.partial || bytes.Contains(u.text, []byte(name)) || bytes.Contains(u.text, []byte(pkg))
	case !isSubscriptionKind(u.Kind), yamlnode.IsDNS1123Label(u.Namespace) && u.Namespace != namespace:
		return false
	default:
		return u.Name == name || u.Package == pkg || u.Name == "" && u.Package == ""
	}
}

// names reports whether the part is the declaration d, or its text contains the name of d.
func (u Unread) names(d identity) bool {
	if u.Kind != "" {
		return u.MayDeclare(d.namespace, d.name, "")
	}
	return bytes.Contains(u.text, []byte(d.name))
}

// MayGroup reports whether the part is an OperatorGroup in a namespace, or its text may contain one. An
// OperatorGroup in the text without a namespace, or with a placeholder, may be in any namespace that the text
// names. An OperatorGroup with another namespace may be moved by a kustomization in the text, to a namespace
// that the kustomization names.
func (u Unread) MayGroup(namespace string) bool {
	if u.Kind != "" || !bytes.Contains(u.text, []byte("OperatorGroup")) {
		return u.Kind == "OperatorGroup" && (u.Namespace == "" || u.Namespace == namespace)
	}
	inNamespace := regexp.MustCompile(`(?m)namespace["']?:\s*["']?` + regexp.QuoteMeta(namespace) + `(["'\s,}]|$)`)
	fixed := regexp.MustCompile(`namespace["']?:\s*["']?[a-z0-9]`)
	moves := regexp.MustCompile(`(?m)^(namespace|patches[A-Za-z0-9]*|replacements|transformers|components):`)
	// anywhere and elsewhere: the text has an OperatorGroup without a namespace, or with another namespace.
	// named and moved: another document contains the namespace, and may also move objects to it.
	var anywhere, elsewhere, named, moved bool
	for doc := range bytes.SplitSeq(u.text, []byte("\n---")) {
		here := inNamespace.Match(doc)
		switch hasGroup := bytes.Contains(doc, []byte("OperatorGroup")); {
		case hasGroup && here:
			return true
		case hasGroup && !fixed.Match(doc):
			anywhere = true
		case hasGroup:
			elsewhere = true
		case here:
			named, moved = true, moved || moves.Match(doc)
		}
	}
	return anywhere && named || elsewhere && moved
}

// Equal reports whether u and v are the same part with the same fault. The lines may differ.
func (u Unread) Equal(v Unread) bool {
	return u.Pos.File == v.Pos.File && u.Reason == v.Reason && u.Kind == v.Kind && u.Namespace == v.Namespace && u.Name == v.Name
}

// Faults returns the faults of parts as a diag.List. It returns nil if all are tolerated.
func Faults(parts []Unread) error {
	var out diag.List
	for _, u := range parts {
		if !u.Tolerated {
			out = append(out, u.err)
		}
	}
	return out.Err()
}

// newUnread returns an Unread with the position, reason and hint of e. The caller sets the fields that describe
// the object.
func newUnread(e *diag.Error) Unread {
	return Unread{Pos: e.Pos, Reason: (&diag.Error{Msg: e.Msg, Err: e.Err}).Error(), Hint: e.Hint, err: e}
}

// unreadAll returns an Unread for each fault in err. Each Unread gets the object and the text that describe
// contains. pos is the position for faults without a position.
func unreadAll(pos diag.Pos, err error, describe Unread) []Unread {
	var faults diag.List
	faults.Add(pos, err)
	var out []Unread
	for _, e := range faults {
		u := newUnread(e)
		u.Kind, u.Namespace, u.Name, u.Package = describe.Kind, describe.Namespace, describe.Name, describe.Package
		u.text, u.partial = describe.text, describe.partial
		out = append(out, u)
	}
	return out
}

// unreadObject returns the Unread for an object with a fault.
func unreadObject(e *diag.Error, d identity) Unread {
	u := newUnread(e)
	u.Kind, u.Namespace, u.Name = d.kind, d.namespace, d.name
	return u
}

// isSubscriptionKind reports whether objects of a kind declare an operator. It returns true for an
// unknown kind ("").
func isSubscriptionKind(kind string) bool {
	return slices.Contains([]string{"", Subscription{}.identity().kind, "Subscription", "ClusterExtension", "OperatorPolicy", flux.kind(), argo.kind(), "ApplicationSet"}, kind)
}

// namesOLM reports whether a text contains an API group with declarations.
func namesOLM(text []byte) bool {
	return slices.ContainsFunc([]Dialect{V0, V1, OCM, Quayside}, func(d Dialect) bool { return bytes.Contains(text, []byte(d)) })
}
