package declare

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Unread is a part of the declared files that was not read: an object, a file, a kustomization or the
// output of a generator.
type Unread struct {
	Pos    diag.Pos // of the fault
	Reason string   // the fault without its position
	Hint   string   // the command or the edit that fixes it; may be empty

	// Kind, Namespace, Name and Package are those of the object. They are empty if unknown.
	Kind, Namespace, Name, Package string

	// Tolerated is set for a part that is not seen to have a declaration. The set has a warning about it.
	Tolerated bool

	err     *diag.Error
	text    []byte // text of the files of the part, as far as it is known
	partial bool   // whether only a part of the text is known
	entry   int    // index of the path in LoadOptions.Paths
}

// Declares reports whether the part is a declaration of an operator, or is seen to contain one.
func (u Unread) Declares() bool {
	return !u.Tolerated && isSubscriptionKind(u.Kind) || u.Tolerated && namesOLM(u.text)
}

// MayDeclare reports whether the part may be the declaration namespace/name of an operator, or contain
// it. A part of which nothing is known may contain any declaration.
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

// names reports whether the part is seen to be a declaration, or to name it.
func (u Unread) names(d identity) bool {
	if u.Kind != "" {
		return u.MayDeclare(d.namespace, d.name, "")
	}
	return bytes.Contains(u.text, []byte(d.name))
}

// MayGroup reports whether the part is seen to be an OperatorGroup of a namespace, or to contain one.
func (u Unread) MayGroup(namespace string) bool {
	if u.Kind != "" {
		return u.Kind == "OperatorGroup" && (u.Namespace == "" || u.Namespace == namespace)
	}
	inNamespace := regexp.MustCompile(`namespace["']?:\s*["']?` + regexp.QuoteMeta(namespace) + `["'\s,}]`)
	return bytes.Contains(u.text, []byte("OperatorGroup")) && inNamespace.Match(u.text)
}

// Equal reports whether both are the same part with the same fault, perhaps at another line.
func (u Unread) Equal(v Unread) bool {
	return u.Pos.File == v.Pos.File && u.Reason == v.Reason && u.Kind == v.Kind && u.Namespace == v.Namespace && u.Name == v.Name
}

// Faults returns the faults of the unread parts as a diag.List, or nil if all are tolerated.
func Faults(parts []Unread) error {
	var out diag.List
	for _, u := range parts {
		if !u.Tolerated {
			out = append(out, u.err)
		}
	}
	return out.Err()
}

// newUnread returns the unread part with a fault.
func newUnread(e *diag.Error) Unread {
	return Unread{Pos: e.Pos, Reason: (&diag.Error{Msg: e.Msg, Err: e.Err}).Error(), Hint: e.Hint, err: e}
}

// unreadAll returns an unread part for each fault of err, like describe. pos is for faults without a
// position.
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

// unreadObject returns the unread part with a fault of an object.
func unreadObject(e *diag.Error, d identity) Unread {
	u := newUnread(e)
	u.Kind, u.Namespace, u.Name = d.kind, d.namespace, d.name
	return u
}

// isSubscriptionKind reports whether objects of a kind, or of an unknown kind, declare an operator.
func isSubscriptionKind(kind string) bool {
	return slices.Contains([]string{"", Subscription{}.identity().kind, "Subscription", "ClusterExtension", "OperatorPolicy"}, kind)
}

// namesOLM reports whether a text names an API group with declarations.
func namesOLM(text []byte) bool {
	return slices.ContainsFunc([]Dialect{V0, V1, OCM, Quayside}, func(d Dialect) bool { return bytes.Contains(text, []byte(d)) })
}
