package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
)

func imageRules() []Rule {
	return []Rule{
		{"images.registry-changed", Medium, "image comes from another registry", "other credentials, another mirror, another trust: pulls may fail, and somebody else publishes what runs"},
		{"images.repository-changed", Medium, "image comes from another repository", "mirrors and pull secrets may not cover it"},
		{"images.changed", Info, "another build of the same image", "usual in an upgrade"},
		{"images.same-tag", Low, "same tag, another digest", "the tag was moved: what was tested under this tag is not what will run"},
		{"images.new", Low, "image that was not used before", "it has to be mirrored, scanned and allowed like the others"},
		{"images.removed", Info, "image no longer used", "mirrors may drop it once no cluster runs the old version"},
		{"images.digest-lost", Medium, "image no longer by digest", "a tag can be moved: what runs is no longer what was reviewed"},
		{"images.not-by-digest", Low, "new image without a digest", "a tag can be moved: what runs is not pinned by the review"},
		{"images.not-mirrored", Medium, "image not in the mirror", "a cluster that pulls from the mirror alone cannot start it"},
	}
}

// use is one image at one place of an operator.
type use struct {
	imageref.Ref
	in    string // "Deployment manager"
	at    string // "container manager"; stable from version to version, with in
	where *Object
	steps []step

	container string
}

// place is the same in both states.
func (u use) place() string { return u.in + " " + u.at }

// looksLikeImage reports whether a word is an image.
func looksLikeImage(s string) bool {
	img := imageref.Split(s)
	return img.Plausible() && (img.Digest != "" || img.Tag != "") && strings.Contains(img.Registry, ".") && strings.HasPrefix(s, img.Registry+"/")
}

// imagesIn returns what looks like an image in a text that may be anything, as in
// "4.1=quay.io/org/kafka:4.1 4.2=quay.io/org/kafka:4.2".
func imagesIn(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(text, imageref.Ends), func(word string) bool { return !looksLikeImage(word) })
}

// imagesOf returns the images of one object.
func imagesOf(o *Object) []use {
	_, spec, to := podTemplate(o.Content)
	if spec == nil {
		return nil
	}
	var out []use
	var container string
	add := func(ref, at string, steps []step) {
		if img := imageref.Split(ref); img.Plausible() && ref != "" {
			out = append(out, use{img, o.Ref().Kind + " " + o.Ref().Name, at, o, steps, container})
		}
	}
	for _, field := range slices.Backward(kobj.ContainerLists()) {
		for _, ctr := range kobj.Items(spec, field) {
			name := kobj.Text(ctr, "name")
			container = name
			base := append(slices.Clone(to), step{key: field}, step{by: "name", key: name})
			add(kobj.Text(ctr, "image"), "container "+name, append(slices.Clone(base), step{key: "image"}))
			for _, env := range kobj.Items(ctr, "env") {
				n, v := kobj.Text(env, "name"), kobj.Text(env, "value")
				found := imagesIn(v)
				if strings.HasPrefix(n, "RELATED_IMAGE_") {
					found = []string{v}
				}
				for _, image := range found {
					add(image, "env "+n, append(slices.Clone(base), step{key: "env"}, step{by: "name", key: n}))
				}
			}
			for _, arg := range flags(ctr) {
				for _, image := range imagesIn(arg.value) {
					add(image, "argument "+arg.name, append(slices.Clone(base), step{key: arg.list}))
				}
			}
		}
	}
	return out
}

// Images returns the images that an object runs: those of its containers, and
// those that environment variables and arguments hand to them, each by its full
// name.
func (o *Object) Images() []string {
	var out []string
	for _, u := range imagesOf(o) {
		out = append(out, u.String())
	}
	return out
}

// argument is one command-line flag of a container.
type argument struct{ name, value, list string }

// flags reads "--name=value", "--name value" and bare words of command and args.
func flags(container map[string]any) []argument {
	var out []argument
	for _, list := range []string{"command", "args"} {
		words := kobj.Texts(container, list)
		for i := 0; i < len(words); i++ {
			name, value, ok := strings.Cut(words[i], "=")
			switch {
			case strings.HasPrefix(words[i], "-") && ok:
				out = append(out, argument{name, value, list})
			case strings.HasPrefix(words[i], "-") && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
				out = append(out, argument{words[i], words[i+1], list})
				i++
			case strings.HasPrefix(words[i], "-"):
				out = append(out, argument{words[i], "", list})
			default:
				out = append(out, argument{fmt.Sprintf("%s[%d]", list, i), words[i], list})
			}
		}
	}
	return out
}

// operatorImages returns the uses of each operator, those of the lock included.
func operatorImages(v *view) map[string][]use {
	out := map[string][]use{}
	for _, o := range v.order {
		out[o.Operator] = append(out[o.Operator], imagesOf(o)...)
	}
	for _, p := range v.Pins {
		for _, r := range p.RelatedImages {
			if img := imageref.Split(r.Image); img.Plausible() {
				out[p.Key()] = append(out[p.Key()], use{Ref: img, at: "related image " + cmp.Or(r.Name, img.Name())})
			}
		}
	}
	return out
}

func compareImages(c *comparison) {
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range union(old, now) {
		d := imageDiff{c: c, operator: operator, old: old[operator], now: now[operator], said: map[string][]use{}}
		d.run()
	}
}

// imageDiff compares the images of one operator. The same step at several
// places is one finding.
type imageDiff struct {
	c        *comparison
	operator string
	old, now []use
	said     map[string][]use // rule and images → places
}

func (d *imageDiff) run() {
	type change struct {
		rule string
		a, b imageref.Ref
		use  use
	}
	var order []change
	note := func(rule string, a, b imageref.Ref, u use) {
		k := rule + "\n" + a.String() + "\n" + b.String()
		if d.said[k] == nil {
			order = append(order, change{rule, a, b, u})
		}
		if !slices.ContainsFunc(d.said[k], func(o use) bool { return o.place() == u.place() && o.container == u.container }) {
			d.said[k] = append(d.said[k], u)
		}
	}
	for _, u := range d.now {
		before, rule := d.step(u)
		if rule != "" {
			note(rule, before, u.Ref, u)
		}
		if u.Digest == "" && before.Digest != "" {
			note("images.digest-lost", before, u.Ref, u)
		} else if u.Digest == "" && rule == "images.new" {
			note("images.not-by-digest", imageref.Ref{}, u.Ref, u)
		}
		if rule != "" && d.c.opt.Mirrors != nil && !mirrored(u.Ref, d.c.opt.Mirrors) {
			note("images.not-mirrored", imageref.Ref{}, u.Ref, u)
		}
	}
	for _, u := range d.old {
		if !slices.ContainsFunc(d.now, func(n use) bool { return n.Name() == u.Name() || n.place() == u.place() }) {
			note("images.removed", u.Ref, imageref.Ref{}, u)
		}
	}
	for _, ch := range order {
		d.say(ch.rule, ch.a, ch.b, ch.use)
	}
}

// step returns what stood where u stands, and the rule that the change falls
// under; "" where nothing changed.
func (d *imageDiff) step(u use) (imageref.Ref, string) {
	had := func(match func(use) bool) (imageref.Ref, bool) {
		i := slices.IndexFunc(d.old, match)
		if i < 0 {
			return imageref.Ref{}, false
		}
		return d.old[i].Ref, true
	}
	if _, ok := had(func(o use) bool { return o.Ref == u.Ref }); ok {
		return u.Ref, ""
	}
	if was, ok := had(func(o use) bool { return o.Name() == u.Name() && o.place() == u.place() }); ok {
		return was, sameName(was, u.Ref)
	}
	if was, ok := had(func(o use) bool { return o.place() == u.place() }); ok {
		if _, elsewhere := had(func(o use) bool { return o.Name() == u.Name() }); !elsewhere {
			if was.Registry != u.Registry {
				return was, "images.registry-changed"
			}
			return was, "images.repository-changed"
		}
	}
	if was, ok := had(func(o use) bool { return o.Name() == u.Name() }); ok {
		return was, sameName(was, u.Ref)
	}
	return imageref.Ref{}, "images.new"
}

func sameName(was, is imageref.Ref) string {
	if was.Tag == is.Tag && was.Tag != "" && was.Digest != "" && is.Digest != "" {
		return "images.same-tag"
	}
	return "images.changed"
}

func mirrored(img imageref.Ref, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		_, ok := imageref.Below(img.Name(), strings.TrimSuffix(p, "/"))
		return ok
	})
}

// moved says how another build of one image differs.
func moved(a, b imageref.Ref) string {
	if a.Tag != b.Tag && a.Tag != "" && b.Tag != "" {
		return fmt.Sprintf("%s moves from %s to %s", b.Name(), a.Tag, b.Tag)
	}
	return "another build of " + b.Name()
}

func (d *imageDiff) say(rule string, a, b imageref.Ref, u use) {
	places := d.said[rule+"\n"+a.String()+"\n"+b.String()]
	f := Finding{Operator: d.operator, Field: u.at, Container: u.container, where: u.where, steps: u.steps}
	if a != (imageref.Ref{}) {
		f.Before = a.String()
	}
	if b != (imageref.Ref{}) {
		f.After = b.String()
	}
	words := map[string]string{
		"images.registry-changed":   fmt.Sprintf("%s takes the place of %s", b.Name(), a.Name()),
		"images.repository-changed": fmt.Sprintf("%s takes the place of %s", b.Name(), a.Name()),
		"images.changed":            moved(a, b),
		"images.same-tag":           fmt.Sprintf("%s:%s is another build than before", b.Name(), b.Tag),
		"images.new":                fmt.Sprintf("%s is new", b.Name()),
		"images.removed":            fmt.Sprintf("%s is no longer used", a.Name()),
		"images.digest-lost":        fmt.Sprintf("%s is no longer pinned by digest", b.Name()),
		"images.not-by-digest":      fmt.Sprintf("%s is not pinned by digest", b.Name()),
		"images.not-mirrored":       fmt.Sprintf("%s is not in the mirror", b.Name()),
	}
	f.Message = words[rule]
	if len(places) > 1 {
		f.Message += atPlaces(len(places))
		for _, u := range places {
			f.spots = append(f.spots, d.c.spot(u))
		}
	}
	d.c.add(rule, u.where, f)
}

func atPlaces(n int) string { return fmt.Sprintf(" (at %s)", plural(n, "place", "places")) }

// spot returns a place of an image.
func (c *comparison) spot(u use) spot {
	s := spot{Field: u.at, Container: u.container, where: u.where, steps: u.steps}
	if u.where != nil {
		s.Object, s.Place = u.where.Ref(), Place{Path: u.where.Path, Removed: c.gone(u.where)}
	}
	return s
}
