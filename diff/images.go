package diff

import (
	"fmt"
	"slices"
	"strings"
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

// image is a reference, taken apart.
type image struct{ registry, repository, tag, digest string }

func (i image) String() string {
	s := i.registry + "/" + i.repository
	if i.tag != "" {
		s += ":" + i.tag
	}
	if i.digest != "" {
		s += "@" + i.digest
	}
	return s
}

func (i image) name() string { return i.registry + "/" + i.repository }

// parseImage takes a reference apart as container engines do: without a
// registry it is docker.io's. ok is false for what cannot be one.
func parseImage(s string) (img image, ok bool) {
	rest, digest, _ := strings.Cut(s, "@")
	img.digest = digest
	slash := strings.LastIndexByte(rest, '/')
	if colon := strings.LastIndexByte(rest, ':'); colon > slash {
		rest, img.tag = rest[:colon], rest[colon+1:]
	}
	first, more, found := strings.Cut(rest, "/")
	switch {
	case found && (strings.ContainsAny(first, ".:") || first == "localhost"):
		img.registry, img.repository = first, more
		if img.registry == "index.docker.io" {
			img.registry = "docker.io"
		}
		if img.registry == "docker.io" && !strings.Contains(more, "/") {
			img.repository = "library/" + more
		}
	case found:
		img.registry, img.repository = "docker.io", rest
	default:
		img.registry, img.repository = "docker.io", "library/"+rest
	}
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789._-/"
	valid := img.repository != "" && strings.Trim(img.repository, allowed) == "" && !strings.Contains(img.repository, "//") &&
		!strings.HasPrefix(img.repository, "/") && !strings.HasSuffix(img.repository, "/") && !strings.ContainsAny(img.tag+img.registry, " \t/")
	return img, valid && (digest == "" || strings.HasPrefix(digest, "sha256:") || strings.HasPrefix(digest, "sha512:"))
}

// use is one image at one place of an operator.
type use struct {
	image
	in    string // "Deployment manager"
	at    string // "container manager"; stable from version to version, with in
	where *Object
	steps []step
}

// place is the same in both states.
func (u use) place() string { return u.in + " " + u.at }

// looksLikeImage is stricter than parseImage: for texts that may be anything.
func looksLikeImage(s string) bool {
	img, ok := parseImage(s)
	return ok && (img.digest != "" || img.tag != "") && strings.Contains(img.registry, ".") && strings.HasPrefix(s, img.registry+"/")
}

// imagesOf returns the images of one object.
func imagesOf(o *Object) []use {
	_, spec, to := podTemplate(o.Content)
	if spec == nil {
		return nil
	}
	var out []use
	add := func(ref, at string, steps []step) {
		if img, ok := parseImage(ref); ok && ref != "" {
			out = append(out, use{img, o.Ref().Kind + " " + o.Ref().Name, at, o, steps})
		}
	}
	for _, field := range containerLists() {
		for _, ctr := range items(spec, field) {
			name := text(ctr, "name")
			base := append(slices.Clone(to), step{key: field}, step{by: "name", key: name})
			add(text(ctr, "image"), "container "+name, append(slices.Clone(base), step{key: "image"}))
			for _, env := range items(ctr, "env") {
				n, v := text(env, "name"), text(env, "value")
				if strings.HasPrefix(n, "RELATED_IMAGE_") || looksLikeImage(v) {
					add(v, "env "+n, append(slices.Clone(base), step{key: "env"}, step{by: "name", key: n}))
				}
			}
			for _, arg := range flags(ctr) {
				if looksLikeImage(arg.value) {
					add(arg.value, "argument "+arg.name, append(slices.Clone(base), step{key: arg.list}))
				}
			}
		}
	}
	return out
}

func containerLists() []string { return []string{"containers", "initContainers"} }

// argument is one command-line flag of a container.
type argument struct{ name, value, list string }

// flags reads "--name=value", "--name value" and bare words of command and args.
func flags(container map[string]any) []argument {
	var out []argument
	for _, list := range []string{"command", "args"} {
		words := texts(container, list)
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
			if img, ok := parseImage(r.Image); ok {
				out[operatorOf(p)] = append(out[operatorOf(p)], use{image: img, at: "related image " + or(r.Name, img.name())})
			}
		}
	}
	return out
}

func compareImages(c *comparison) {
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range union(old, now) {
		d := imageDiff{c: c, operator: operator, old: old[operator], now: now[operator], said: map[string][]string{}}
		d.run()
	}
}

// imageDiff compares the images of one operator. The same step at several
// places is one finding.
type imageDiff struct {
	c        *comparison
	operator string
	old, now []use
	said     map[string][]string // rule and images → places
}

func (d *imageDiff) run() {
	type change struct {
		rule string
		a, b image
		use  use
	}
	var order []change
	note := func(rule string, a, b image, u use) {
		k := rule + "\n" + a.String() + "\n" + b.String()
		if d.said[k] == nil {
			order = append(order, change{rule, a, b, u})
		}
		if !slices.Contains(d.said[k], u.place()) {
			d.said[k] = append(d.said[k], u.place())
		}
	}
	for _, u := range d.now {
		before, rule := d.step(u)
		if rule != "" {
			note(rule, before, u.image, u)
		}
		if u.digest == "" && before.digest != "" {
			note("images.digest-lost", before, u.image, u)
		} else if u.digest == "" && rule == "images.new" {
			note("images.not-by-digest", image{}, u.image, u)
		}
		if rule != "" && d.c.opt.Mirrors != nil && !mirrored(u.image, d.c.opt.Mirrors) {
			note("images.not-mirrored", image{}, u.image, u)
		}
	}
	for _, u := range d.old {
		if !slices.ContainsFunc(d.now, func(n use) bool { return n.name() == u.name() || n.place() == u.place() }) {
			note("images.removed", u.image, image{}, u)
		}
	}
	for _, ch := range order {
		d.say(ch.rule, ch.a, ch.b, ch.use)
	}
}

// step returns what stood where u stands, and the rule that the change falls
// under; "" where nothing changed.
func (d *imageDiff) step(u use) (image, string) {
	had := func(match func(use) bool) (image, bool) {
		i := slices.IndexFunc(d.old, match)
		if i < 0 {
			return image{}, false
		}
		return d.old[i].image, true
	}
	if _, ok := had(func(o use) bool { return o.image == u.image }); ok {
		return u.image, ""
	}
	if was, ok := had(func(o use) bool { return o.name() == u.name() && o.place() == u.place() }); ok {
		return was, sameName(was, u.image)
	}
	if was, ok := had(func(o use) bool { return o.place() == u.place() }); ok {
		if _, elsewhere := had(func(o use) bool { return o.name() == u.name() }); !elsewhere {
			if was.registry != u.registry {
				return was, "images.registry-changed"
			}
			return was, "images.repository-changed"
		}
	}
	if was, ok := had(func(o use) bool { return o.name() == u.name() }); ok {
		return was, sameName(was, u.image)
	}
	return image{}, "images.new"
}

func sameName(was, is image) string {
	if was.tag == is.tag && was.tag != "" && was.digest != "" && is.digest != "" {
		return "images.same-tag"
	}
	return "images.changed"
}

func mirrored(img image, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		p = strings.TrimSuffix(p, "/")
		if domain, wild := strings.CutPrefix(p, "*"); wild { // "*.example.com", "*.example.com/org"
			suffix, under, _ := strings.Cut(domain, "/")
			return strings.HasSuffix(img.registry, suffix) && (under == "" || img.repository == under || strings.HasPrefix(img.repository, under+"/"))
		}
		return img.name() == p || img.registry == p || strings.HasPrefix(img.name(), p+"/")
	})
}

// moved says how another build of one image differs.
func moved(a, b image) string {
	if a.tag != b.tag && a.tag != "" && b.tag != "" {
		return fmt.Sprintf("%s moves from %s to %s", b.name(), a.tag, b.tag)
	}
	return "another build of " + b.name()
}

func (d *imageDiff) say(rule string, a, b image, u use) {
	places := d.said[rule+"\n"+a.String()+"\n"+b.String()]
	f := Finding{Operator: d.operator, Field: u.at, where: u.where, steps: u.steps}
	if a != (image{}) {
		f.Before = a.String()
	}
	if b != (image{}) {
		f.After = b.String()
	}
	words := map[string]string{
		"images.registry-changed":   fmt.Sprintf("%s takes the place of %s", b.name(), a.name()),
		"images.repository-changed": fmt.Sprintf("%s takes the place of %s", b.name(), a.name()),
		"images.changed":            moved(a, b),
		"images.same-tag":           fmt.Sprintf("%s:%s is another build than before", b.name(), b.tag),
		"images.new":                fmt.Sprintf("%s is new", b.name()),
		"images.removed":            fmt.Sprintf("%s is no longer used", a.name()),
		"images.digest-lost":        fmt.Sprintf("%s is no longer pinned by digest", b.name()),
		"images.not-by-digest":      fmt.Sprintf("%s is not pinned by digest", b.name()),
		"images.not-mirrored":       fmt.Sprintf("%s is not in the mirror", b.name()),
	}
	f.Message = words[rule]
	if len(places) > 1 {
		f.Message += fmt.Sprintf(" (at %s)", plural(len(places), "place", "places"))
	}
	d.c.add(rule, u.where, f)
}
