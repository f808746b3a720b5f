package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// maxCheckout bounds what is taken out of a revision to render its lock.
const maxCheckout = 4 << 30

// states returns both sides as diff compares them.
func (c *compared) states(ctx context.Context) (before, after diff.State, err error) {
	if err := c.fill(ctx); err != nil {
		return before, after, err
	}
	c.slim()
	if after, err = c.state(&c.after, nil); err != nil {
		return before, after, c.after.named(err)
	}
	if before, err = c.state(&c.before, after.Objects); err != nil {
		return before, after, c.before.named(err)
	}
	c.resources(&before, &after)
	return before, after, nil
}

// fill sees to it that both sides have a tree: the committed one where it is
// what the lock says, else the lock, rendered.
func (c *compared) fill(ctx context.Context) error {
	var stale []*side
	for _, d := range []*side{&c.before, &c.after} {
		if d.read || d.lock == nil || c.rendered.value == "tree" {
			continue
		}
		if c.rendered.value == "auto" && d.committed(path.Join(c.inRepo(d.space.ws.Output), "operators")+"/") {
			continue
		}
		if len(d.tree) > 0 && c.rendered.value == "auto" {
			c.talk.note("%s of %s is not what %s says: rendering it from there", d.space.ws.Output, d.name, lockFile)
		}
		stale = append(stale, d)
	}
	locks := make([]*lockfile.File, len(stale))
	for i, d := range stale {
		locks[i] = d.lock
	}
	if len(stale) == 2 && stale[0].space == stale[1].space {
		locks[0], locks[1] = touched(locks[0], locks[1])
	}
	for i, d := range stale {
		var err error
		if d.tree, err = c.render(ctx, d, locks[i], i == len(stale)-1); err != nil {
			return d.named(err)
		}
	}
	return nil
}

// committed reports whether the tree of a side holds what its lock pins, as
// far as the versions that stand on the objects tell. dir is where the operators
// lie.
func (d *side) committed(dir string) bool {
	have := map[string]bool{}
	for _, f := range d.tree {
		rest, inside := strings.CutPrefix(f.Path, dir)
		if parts := strings.Split(rest, "/"); inside && len(parts) > 2 {
			have[parts[0]+"/"+parts[1]] = true
		}
	}
	for _, p := range d.lock.Pins {
		if !have[p.Key()] || !d.holds(dir, p) {
			return false
		}
		delete(have, p.Key())
	}
	return len(have) == 0
}

// holds reports whether the objects of a pin carry its version.
func (d *side) holds(dir string, p lockfile.Pin) bool {
	version := []byte("    quayside.dev/version: ")
	for _, f := range d.tree {
		if !strings.HasPrefix(f.Path, dir+p.Key()+"/") {
			continue
		}
		if _, rest, ok := bytes.Cut(f.Data, version); ok {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			return strings.Trim(string(line), `"'`) == p.Version
		}
	}
	return false
}

// touched returns both locks without the pins that are equal and that share
// neither a namespace nor an API with one that is not: these render to the
// same on both sides.
func touched(a, b *lockfile.File) (*lockfile.File, *lockfile.File) {
	if len(a.Accepted)+len(b.Accepted) > 0 {
		return a, b // the budget is held against everything
	}
	changed := map[string]bool{}
	for _, ch := range lockfile.Diff(a, b) {
		if ch.Package != "" {
			changed[ch.Namespace+"/"+ch.Package] = true
		}
	}
	pins := slices.Concat(a.Pins, b.Pins)
	for again := true; again; {
		again = false
		shared := map[string]bool{}
		for _, p := range pins {
			if changed[p.Key()] {
				for _, s := range shares(p) {
					shared[s] = true
				}
			}
		}
		for _, p := range pins {
			if !changed[p.Key()] && slices.ContainsFunc(shares(p), func(s string) bool { return shared[s] }) {
				changed[p.Key()], again = true, true
			}
		}
	}
	only := func(f *lockfile.File) *lockfile.File {
		return lockfile.New(f.Catalogs, slices.DeleteFunc(slices.Clone(f.Pins), func(p lockfile.Pin) bool { return !changed[p.Key()] }))
	}
	return only(a), only(b)
}

// shares returns what a pin may have in common with others.
func shares(p lockfile.Pin) []string {
	out := []string{"namespace " + p.Namespace}
	for _, prop := range p.Properties {
		if prop.Type == "olm.gvk" {
			out = append(out, string(prop.Value))
		}
	}
	return out
}

// render renders the lock of a side, with the files of its revision in a
// temporary directory.
func (c *compared) render(ctx context.Context, d *side, lock *lockfile.File, warn bool) ([]diff.File, error) {
	s := d.space
	if d.rev != nil {
		dir, err := os.MkdirTemp("", "quayside-diff-*")
		if err != nil {
			return nil, err
		}
		c.temporary = append(c.temporary, dir)
		output := c.inRepo(s.ws.Output) + "/"
		err = d.rev.Extract(c.prefix, dir, maxCheckout, func(name string) bool { return !strings.HasPrefix(name, output) })
		if err != nil {
			return nil, err
		}
		s = &space{app: s.app, dir: dir, ws: s.ws}
	}
	opt, err := s.renderOptions()
	if err != nil {
		return nil, err
	}
	bundles, err := s.contents(lock, c.offline)
	if err != nil {
		return nil, err
	}
	defer bundles.close()
	res, err := render.All(lock, opt, func(p lockfile.Pin) (fs.FS, error) { return bundles.open(ctx, p) })
	s.talk.done()
	if err != nil {
		return nil, err
	}
	if warn {
		s.talk.warn(res.Warnings)
	}
	var files []diff.File
	for name, data := range res.Tree.All() {
		files = append(files, diff.File{Path: path.Join(c.inRepo(d.space.ws.Output), name), Data: c.pool.add(data)})
	}
	return diff.Base(c.inRepo(d.space.ws.Output), files), nil
}

// slim cuts definitions that both sides have in the same words down to their
// names: they are most of the bytes, and nothing else is asked of them. It
// leaves those whose group something that differs speaks of.
func (c *compared) slim() {
	if c.before.lock != nil && len(c.before.lock.Accepted) > 0 || c.after.lock != nil && len(c.after.lock.Accepted) > 0 {
		return
	}
	a, b := byPath(c.before.tree, c.before.own), byPath(c.after.tree, c.after.own)
	var differs [][]byte
	for _, side := range []struct{ one, other map[string][]byte }{{a, b}, {b, a}} {
		for name, data := range side.one {
			if !bytes.Equal(data, side.other[name]) {
				differs = append(differs, data)
			}
		}
	}
	for _, tree := range [][]diff.File{c.before.tree, c.after.tree} {
		for i, f := range tree {
			if !bytes.Equal(a[f.Path], b[f.Path]) {
				continue
			}
			if head, group, ok := definition(f.Data); ok && !mentioned(differs, group) {
				tree[i].Data = head
			}
		}
	}
}

func byPath(lists ...[]diff.File) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range slices.Concat(lists...) {
		out[f.Path] = f.Data
	}
	return out
}

func mentioned(files [][]byte, group string) bool {
	return slices.ContainsFunc(files, func(data []byte) bool { return bytes.Contains(data, []byte(group+"/")) })
}

// definition returns a rendered CustomResourceDefinition up to its versions,
// and its group.
func definition(data []byte) (head []byte, group string, ok bool) {
	if !bytes.Contains(data[:min(len(data), 200)], []byte("kind: CustomResourceDefinition\n")) || bytes.Contains(data, []byte("\n---")) {
		return nil, "", false
	}
	head, _, ok = bytes.Cut(data, []byte("\n  versions:\n"))
	_, rest, found := bytes.Cut(head, []byte("\nspec:\n"))
	if !ok || !found {
		return nil, "", false
	}
	for line := range strings.Lines(string(rest)) {
		if text, is := strings.CutPrefix(line, "  group: "); is {
			return append(head[:len(head):len(head)], '\n'), strings.Trim(text, "\"'\n"), true
		}
	}
	return nil, "", false
}

// state reads the objects of a side. known are those of the other.
func (c *compared) state(d *side, known []diff.Object) (diff.State, error) {
	s := diff.State{Name: d.name, KubernetesVersion: d.space.ws.KubernetesVersion}
	if d.lock != nil {
		s.Pins = d.lock.Pins
	}
	var err error
	s.Objects, err = diff.Objects(d.tree, s.Pins, known)
	return s, err
}

// resources reads the user's own objects of both sides; those of files that
// are the same are parsed once.
func (c *compared) resources(before, after *diff.State) {
	definitions := slices.Concat(before.Objects, after.Objects)
	var skipped []string
	after.Resources, skipped = diff.Own(c.inRepo(c.after.space.ws.Output), c.after.own, definitions)
	if c.before.space == c.after.space && reflect.DeepEqual(c.before.own, c.after.own) {
		before.Resources = after.Resources
	} else {
		var fresh []diff.File
		same := byPath(c.after.own)
		kept := map[string]bool{}
		for _, f := range c.before.own {
			if data, ok := same[f.Path]; ok && bytes.Equal(data, f.Data) {
				kept[f.Path] = true
			} else {
				fresh = append(fresh, f)
			}
		}
		before.Resources, _ = diff.Own(c.inRepo(c.before.space.ws.Output), fresh, definitions)
		for _, o := range after.Resources {
			if kept[o.Path] {
				before.Resources = append(before.Resources, o)
			}
		}
	}
	if len(skipped) > 0 {
		c.notes = append(c.notes, fmt.Sprintf("not looked into, because they do not parse as YAML: %s", strings.Join(skipped[:min(len(skipped), 5)], ", ")))
	}
}
