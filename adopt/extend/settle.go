package extend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/declare"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/subscription"
)

// fresh is a declaration that the workspace does not have.
type fresh struct {
	declare.Declaration
	path string // of its file: "subscriptions/my-etcd.yaml"
	text []byte
	set  *subscription.Set // what it says, with places of its own
}

// named returns "Kind namespace/name", or "Kind name".
func named(o kobj.Object) string {
	return kobj.Key{Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}.String()
}

// counted reports whether objects of a kind say what is installed.
func counted(kind string) bool { return kind != "Namespace" }

// settle finds the declarations that resolve to what is installed, and the lock
// that comes of them. An operator for which that cannot be is left, with the
// reason, and the others are looked at again.
func (b *builder) settle(ctx context.Context) error {
	chosen := false
	for {
		if err := b.compare(); err != nil {
			return err
		}
		if len(b.fresh) == 0 {
			b.config = nil // it would be for nothing
		}
		if len(b.fresh) == 0 && len(b.found.Operators) == 0 {
			b.lock = b.before
			return nil
		}
		in, dropped, err := b.inputs(ctx)
		if err != nil {
			return err
		}
		if !dropped && !chosen {
			chosen = true
			dropped = b.choose(in.Index)
		}
		if !dropped {
			dropped, err = b.resolve(ctx, in)
		}
		if err != nil || !dropped {
			return err
		}
	}
}

// compare holds what is to be declared against what is declared. What is new is in
// fresh afterwards.
func (b *builder) compare() error {
	for {
		declarations, left := b.found.Objects(b.settled)
		b.fresh, b.unchanged, b.left = nil, 0, slices.SortedFunc(slices.Values(append(left, b.found.Left...)), declare.Left.Compare)
		conflicts := slices.DeleteFunc(slices.Clone(b.conflicts), func(c Conflict) bool { return !c.Operator })
		again := false
		for _, d := range declarations {
			f := fresh{Declaration: d, path: path.Join(b.dir, d.File), text: yamlnode.Encode(d.Object)}
			var err error
			if f.set, err = subscription.Parse(f.path, f.text); err != nil {
				if d.Operator == nil {
					return fmt.Errorf("%s cannot be declared: %w", named(d.Object), err)
				}
				b.found.Leave(d.Operator, "it cannot be declared: "+faultOf(err))
				again = true
				continue
			}
			switch c, declared := b.declared(f); {
			case !declared:
				b.fresh = append(b.fresh, f)
			case c == nil && counted(d.Object.Kind()):
				b.unchanged++
			case c == nil:
			case d.Operator != nil:
				b.found.Drop(d.Operator)
				conflicts = append(conflicts, *c)
				again = true
			default:
				conflicts = append(conflicts, *c)
			}
		}
		b.conflicts = conflicts
		if !again {
			return nil
		}
	}
}

// faultOf returns the first of faults, without its place.
func faultOf(err error) string {
	var list diag.List
	if errors.As(err, &list) && len(list) > 0 {
		return (&diag.Error{Msg: list[0].Msg, Err: list[0].Err}).Error()
	}
	return err.Error()
}

// set returns what the workspace declares with what is new, with the places that it
// will have.
func (b *builder) set() (*subscription.Set, error) {
	sets := []*subscription.Set{b.existing}
	texts := map[string][]byte{}
	for _, f := range b.fresh {
		text, known := texts[f.path]
		if !known {
			old, _, err := b.file(f.path)
			if err != nil {
				return nil, err
			}
			text = bytes.Repeat([]byte{'\n'}, bytes.Count(yamlnode.Append(old, nil), []byte{'\n'}))
			if len(text) > 0 {
				text = text[1:] // of the marker that is put in between
			}
		}
		texts[f.path] = yamlnode.Append(text, f.text)
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		set, err := subscription.Parse(name, texts[name])
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return subscription.Merge(sets...)
}

// file returns the content of a file, and whether it is there.
func (b *builder) file(name string) (text []byte, there bool, err error) {
	text, err = b.project.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return text, true, err
}

// inputs reads what resolving reads. It reports whether operators were left because
// their bundles cannot be read.
func (b *builder) inputs(ctx context.Context) (*project.Inputs, bool, error) {
	set, err := b.set()
	if err != nil {
		return nil, false, err
	}
	b.starting(set)
	p := b.project.With(b.settings, set, b.before)
	opt := p.ResolveOptions()
	opt.KeepGoing = true
	in, err := p.Inputs(ctx, opt, false)
	var faults diag.List
	if !errors.As(err, &faults) {
		return in, false, err
	}
	for _, f := range faults {
		op := b.operatorAt(set, f.Pos)
		if op == nil {
			return nil, false, err
		}
		b.found.Leave(op, "its bundle cannot be read: "+faultOf(diag.List{f}))
	}
	return nil, true, nil
}

// starting has every operator begin at what is installed. A ClusterExtension has no
// words for that.
func (b *builder) starting(set *subscription.Set) {
	for i := range set.Subscriptions {
		sub := &set.Subscriptions[i]
		if op := b.operator(sub.Namespace, sub.Name); op != nil && sub.Dialect == subscription.V1 {
			sub.StartingCSV = op.Bundle
		}
	}
}

func (b *builder) operator(namespace, name string) *declare.Operator {
	i := slices.IndexFunc(b.found.Operators, func(op *declare.Operator) bool { return op.Namespace == namespace && op.Name == name })
	if i < 0 {
		return nil
	}
	return b.found.Operators[i]
}

// operatorAt returns the operator whose bundle is named at a place, or nil.
func (b *builder) operatorAt(set *subscription.Set, pos diag.Pos) *declare.Operator {
	for _, sub := range set.Subscriptions {
		if sub.Bundle != "" && sub.At(subscription.FieldBundle) == pos {
			return b.operator(sub.Namespace, sub.Name)
		}
	}
	return nil
}

// choose looks every operator up in its catalog. One that no catalog has is to be
// declared by its image, where that is known. It reports whether anything is to be
// declared otherwise than before.
func (b *builder) choose(x *catalog.Index) bool {
	changed := false
	for _, op := range slices.Clone(b.found.Operators) {
		if op.ByItself || b.locked(op) {
			continue
		}
		why := lacks(x, op)
		switch {
		case why == "":
			continue
		case op.Kind == "ClusterExtension" || op.Image == "":
			b.found.Leave(op, why+", and nothing in the cluster says which image it is")
		case !imageref.Valid(op.Image):
			b.found.Leave(op, why+fmt.Sprintf(", and %q, which its InstallPlan fetched, is no image", op.Image))
		default:
			op.ByItself = true
			op.Notes = append(op.Notes, "pinned by its image, for "+why)
			if imageref.DigestIn(op.Image) == "" {
				op.Notes = append(op.Notes, "its InstallPlan names the image by tag: what the tag is now may differ from what is installed")
			}
		}
		changed = true
	}
	return changed
}

// locked reports whether the lock that is there pins what is installed.
func (b *builder) locked(op *declare.Operator) bool {
	if b.before == nil {
		return false
	}
	pin, ok := b.before.Pin(op.Namespace, op.Package)
	return ok && pin.Bundle == op.Bundle && pin.Subscription() == op.Name
}

// lacks returns why an operator cannot come from a catalog, "" where it can.
func lacks(x *catalog.Index, op *declare.Operator) string {
	catalogs := x.Having(op.Package)
	if op.Kind == "Subscription" {
		c, ok := x.Catalog(op.Catalog)
		if !ok {
			if err := x.Broken()[op.Catalog]; err != nil {
				return fmt.Sprintf("catalog %s cannot be read (%s)", op.Catalog, faultOf(err))
			}
			return fmt.Sprintf("catalog %s is not at hand", op.Catalog)
		}
		catalogs = []*catalog.Catalog{c}
	}
	why := fmt.Sprintf("no catalog has package %s", op.Package)
	for _, c := range catalogs {
		pkg, ok := c.Package(op.Package)
		if !ok {
			why = fmt.Sprintf("catalog %s no longer has package %s", c.ID(), op.Package)
			continue
		}
		if why = lacking(pkg, op); why == "" {
			return ""
		}
	}
	return why
}

// lacking returns why an operator cannot come from a package.
func lacking(pkg *catalog.Package, op *declare.Operator) string {
	id := pkg.Catalog().ID()
	bundle, ok := pkg.Bundle(op.Bundle)
	if !ok {
		return fmt.Sprintf("catalog %s no longer has %s", id, op.Bundle)
	}
	in := func(e *catalog.Entry) bool {
		return len(op.Channels) == 0 || slices.Contains(op.Channels, e.Channel().Name())
	}
	if !slices.ContainsFunc(bundle.Entries(), in) {
		return fmt.Sprintf("channel %s of catalog %s no longer has %s", strings.Join(op.Channels, ", "), id, op.Bundle)
	}
	have, want := imageref.DigestIn(bundle.Image()), imageref.DigestIn(op.Image)
	if have != "" && want != "" && have != want {
		return fmt.Sprintf("catalog %s has another image of %s now", id, op.Bundle)
	}
	return ""
}

// resolve makes the lock: first from what is installed, then once more as everybody
// will from now on. It reports whether operators were left, because they do not
// come to what is installed.
func (b *builder) resolve(ctx context.Context, in *project.Inputs) (dropped bool, err error) {
	b.project.Talk.Progress("resolving")
	res, err := in.Resolve(ctx)
	if err != nil {
		return false, err
	}
	if b.judge(res) {
		return true, nil
	}
	if res.Lock == nil {
		return false, res.Failed
	}
	set, err := b.set()
	if err != nil {
		return false, err
	}
	p := b.project.With(b.settings, set, res.Lock)
	again, err := p.Inputs(ctx, p.ResolveOptions(), false)
	if err != nil {
		return false, err
	}
	last, err := again.Resolve(ctx)
	switch {
	case err != nil:
		return false, err
	case last.Failed != nil:
		return false, last.Failed
	}
	b.lock, b.changes = last.Lock, res.Changes
	b.warnings = b.project.Waive(diag.SortWarnings(append(slices.Clone(set.Warnings), last.Warnings...)))
	return false, nil
}
