package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
)

func imageRules() []RuleInfo {
	return []RuleInfo{
		{"images.registry-changed", Medium, "image registry changed", "credentials, mirrors and signature policy may differ: pulls may fail, and the image has another publisher"},
		{"images.repository-changed", Medium, "image repository changed", "mirrors and pull secrets may not cover the new repository"},
		{"images.changed", Info, "image updated", "expected in an upgrade"},
		{"images.same-tag", Low, "same tag, another digest", "the tag was moved: the tested image is not the one that will run"},
		{"images.new", Medium, "image added", "mirror, scan and allow it like the others"},
		{"images.removed", Info, "image removed", "mirrors may delete it once no cluster runs the old version"},
		{"images.digest-lost", High, "image no longer pinned by digest", "a tag can be moved: the running image may differ from the reviewed one"},
		{"images.not-by-digest", Low, "image added without a digest", "a tag can be moved: the review does not pin the running image"},
		{"images.gone", Medium, "image that its registry no longer serves", "nodes that do not have the image cannot start it: replace it in the field images of an overlay, or mirror it"},
		{"images.not-mirrored", Medium, "image not in the mirror", "clusters that pull only from the mirror cannot start it"},
	}
}

// imageUse is an image at one location in an object or in the lock.
type imageUse struct {
	imageref.Ref
	in            string // kind and name of the object, such as "Deployment manager"
	at            string // location in the object, such as "container manager"
	where         *Object
	containerPath fieldPath

	container string
	field     fieldPath // path of the field that contains the image
}

// locationKey identifies the location of the image. It is the same before and after an upgrade.
func (u imageUse) locationKey() string { return u.in + " " + u.at }

// looksLikeImage reports whether s is an image reference with a tag or digest, and with a registry
// whose name contains a dot.
func looksLikeImage(s string) bool {
	img := imageref.Split(s)
	return img.Plausible() && (img.Digest != "" || img.Tag != "") && strings.Contains(img.Registry, ".") && strings.HasPrefix(s, img.Registry+"/")
}

// imagesIn returns the image references in a text. It splits lists such as
// "4.1=quay.io/org/kafka:4.1 4.2=quay.io/org/kafka:4.2".
func imagesIn(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(text, imageref.IsDelimiter), func(word string) bool { return !looksLikeImage(word) })
}

// imagesOf returns all images in an object with their locations.
func imagesOf(o *Object) []imageUse {
	var out []imageUse
	for _, p := range podsOf(o) {
		out = append(out, podImages(o, p.spec, p.at)...)
	}
	return out
}

// podImages returns the images of a pod of o with their locations. specAt is the path of the pod spec.
func podImages(o *Object, spec map[string]any, specAt fieldPath) []imageUse {
	var out []imageUse
	var container string
	add := func(ref, at string, path fieldPath, field ...step) {
		if img := imageref.Split(ref); img.Plausible() && ref != "" {
			out = append(out, imageUse{img, o.Key().Kind + " " + o.Key().Name, at, o, path, container, path.with(field...)})
		}
	}
	for _, v := range k8s.Items(spec, "volumes") {
		name := k8s.Text(v, "name")
		add(k8s.Text(v, "image", "reference"), "volume "+name, specAt.field("volumes").named(name).field("image", "reference"))
	}
	for _, field := range slices.Backward(k8s.ContainerLists()) {
		for _, ctr := range k8s.Items(spec, field) {
			name := k8s.Text(ctr, "name")
			container = name
			base := specAt.field(field).named(name)
			add(k8s.Text(ctr, "image"), "container "+name, base.field("image"))
			for _, env := range k8s.Items(ctr, "env") {
				n, v := k8s.Text(env, "name"), k8s.Text(env, "value")
				found := imagesIn(v)
				if strings.HasPrefix(n, "RELATED_IMAGE_") {
					found = []string{v}
				}
				for _, image := range found {
					add(image, "env "+n, base.field("env").named(n), step{key: "value"})
				}
			}
			for _, arg := range parseFlags(ctr) {
				for _, image := range imagesIn(arg.value) {
					add(image, "argument "+arg.name, base.field(arg.list), step{by: "flag", key: arg.name})
				}
			}
		}
	}
	return out
}

// Images returns the names of the images that an object runs: the images of its containers, and the
// images in environment variables and arguments.
func (o *Object) Images() []string {
	var out []string
	for _, u := range imagesOf(o) {
		out = append(out, u.String())
	}
	return out
}

// argument is a flag or a positional argument of a container. list is the field that contains the argument:
// "command" or "args".
type argument struct{ name, value, list string }

// parseFlags parses "--name=value", "--name value" and positional arguments in command and args.
func parseFlags(container map[string]any) []argument {
	var out []argument
	for _, list := range []string{"command", "args"} {
		words := k8s.Texts(container, list)
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

// operatorImages returns the images of each operator with their locations, including the related
// images in the lock.
func operatorImages(v *view) map[string][]imageUse {
	out := map[string][]imageUse{}
	for _, o := range v.order {
		out[o.Operator] = append(out[o.Operator], imagesOf(o)...)
	}
	for _, p := range v.Pins {
		for _, r := range p.RelatedImages {
			if img := imageref.Split(r.Image); img.Plausible() {
				out[p.Key()] = append(out[p.Key()], imageUse{Ref: img, at: "related image " + cmp.Or(r.Name, img.Name())})
			}
		}
	}
	return out
}

// compareImages reports changed images, by operator.
func compareImages(c *comparison) {
	old, now := operatorImages(c.before), operatorImages(c.after)
	for _, operator := range unionKeys(old, now) {
		d := imageDiff{c: c, operator: operator, old: old[operator], now: now[operator], locations: map[string][]imageUse{}}
		d.compare()
	}
}

// imageDiff compares the images of one operator. The same change at several locations becomes one
// finding.
type imageDiff struct {
	c         *comparison
	operator  string
	old, now  []imageUse
	locations map[string][]imageUse // locations of equal changes, by rule and images
}

// compare finds the changed images and reports them.
func (d *imageDiff) compare() {
	type change struct {
		rule string
		a, b imageref.Ref
		use  imageUse
	}
	var order []change
	record := func(rule string, a, b imageref.Ref, u imageUse) {
		k := rule + "\n" + a.String() + "\n" + b.String()
		if d.locations[k] == nil {
			order = append(order, change{rule, a, b, u})
		}
		if !slices.ContainsFunc(d.locations[k], func(o imageUse) bool { return o.locationKey() == u.locationKey() && o.container == u.container }) {
			d.locations[k] = append(d.locations[k], u)
		}
	}
	for _, u := range d.now {
		before, rule := d.previous(u)
		if rule != "" {
			record(rule, before, u.Ref, u)
		}
		if u.Digest == "" && before.Digest != "" {
			record("images.digest-lost", before, u.Ref, u)
		} else if u.Digest == "" && rule == "images.new" {
			record("images.not-by-digest", imageref.Ref{}, u.Ref, u)
		}
		if rule != "" && isGone(u.Ref) && !isGone(before) && u.where != nil {
			record("images.gone", imageref.Ref{}, u.Ref, u)
		}
		if rule != "" && d.c.opt.Mirrors != nil && !isMirrored(u.Ref, d.c.opt.Mirrors) {
			record("images.not-mirrored", imageref.Ref{}, u.Ref, u)
		}
	}
	for _, u := range d.old {
		if !slices.ContainsFunc(d.now, func(n imageUse) bool { return n.Name() == u.Name() || n.locationKey() == u.locationKey() }) {
			record("images.removed", u.Ref, imageref.Ref{}, u)
		}
	}
	for _, ch := range order {
		d.report(ch.rule, ch.a, ch.b, ch.use)
	}
}

// previous returns the image that u replaces, and the rule that reports the change. The rule is ""
// if the image has not changed.
func (d *imageDiff) previous(u imageUse) (imageref.Ref, string) {
	find := func(match func(imageUse) bool) (imageref.Ref, bool) {
		i := slices.IndexFunc(d.old, match)
		if i < 0 {
			return imageref.Ref{}, false
		}
		return d.old[i].Ref, true
	}
	if _, ok := find(func(o imageUse) bool { return o.Ref == u.Ref }); ok {
		return u.Ref, ""
	}
	if was, ok := find(func(o imageUse) bool { return o.Name() == u.Name() && o.locationKey() == u.locationKey() }); ok {
		return was, tagChangeRule(was, u.Ref)
	}
	if was, ok := find(func(o imageUse) bool { return o.locationKey() == u.locationKey() }); ok {
		if _, elsewhere := find(func(o imageUse) bool { return o.Name() == u.Name() }); !elsewhere {
			if was.Registry != u.Registry {
				return was, "images.registry-changed"
			}
			return was, "images.repository-changed"
		}
	}
	if was, ok := find(func(o imageUse) bool { return o.Name() == u.Name() }); ok {
		return was, tagChangeRule(was, u.Ref)
	}
	return imageref.Ref{}, "images.new"
}

// tagChangeRule returns the rule for a change of the tag or digest of an image.
func tagChangeRule(was, is imageref.Ref) string {
	if was.Tag == is.Tag && was.Tag != "" && was.Digest != "" && is.Digest != "" {
		return "images.same-tag"
	}
	return "images.changed"
}

// isGone reports whether the registry of an image is known to have stopped serving it.
func isGone(image imageref.Ref) bool {
	_, _, gone := imageref.FindGone(image.String())
	return gone
}

// goneMessage describes an image that its registry no longer serves.
func goneMessage(image imageref.Ref) string {
	why, successor, _ := imageref.FindGone(image.String())
	if successor != "" {
		why += ": " + successor + " replaces it"
	}
	return image.Name() + " is gone: " + why
}

// isMirrored reports whether the name of the image begins with one of the mirrored prefixes.
func isMirrored(img imageref.Ref, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		_, ok := imageref.CutPrefix(img.Name(), strings.TrimSuffix(p, "/"))
		return ok
	})
}

// imageChange describes the change between two tags or digests of the same image.
func imageChange(a, b imageref.Ref) string {
	if a.Tag != b.Tag && a.Tag != "" && b.Tag != "" {
		return fmt.Sprintf("%s updated from %s to %s", b.Name(), a.Tag, b.Tag)
	}
	return "new digest for " + b.Name()
}

// report adds a finding of a rule. a and b are the images before and after the change, and u is the first
// location.
func (d *imageDiff) report(rule string, a, b imageref.Ref, u imageUse) {
	uses := d.locations[rule+"\n"+a.String()+"\n"+b.String()]
	f := Finding{Operator: d.operator, Field: u.at, Container: u.container, where: u.where, path: u.containerPath, explains: []fieldPath{u.field}}
	if a != (imageref.Ref{}) {
		f.Before = a.String()
	}
	if b != (imageref.Ref{}) {
		f.After = b.String()
	}
	messages := map[string]string{
		"images.registry-changed":   fmt.Sprintf("%s replaces %s", b.Name(), a.Name()),
		"images.repository-changed": fmt.Sprintf("%s replaces %s", b.Name(), a.Name()),
		"images.changed":            imageChange(a, b),
		"images.same-tag":           fmt.Sprintf("%s:%s has a new digest", b.Name(), b.Tag),
		"images.new":                fmt.Sprintf("%s is added", b.Name()),
		"images.removed":            fmt.Sprintf("%s is no longer used", a.Name()),
		"images.digest-lost":        fmt.Sprintf("%s is no longer pinned by digest", b.Name()),
		"images.not-by-digest":      fmt.Sprintf("%s is not pinned by digest", b.Name()),
		"images.gone":               goneMessage(b),
		"images.not-mirrored":       fmt.Sprintf("%s is not in the mirror", b.Name()),
	}
	f.Message = messages[rule]
	if len(uses) > 1 {
		f.Message += formatLocationCount(len(uses))
		var r repeats
		for _, u := range uses {
			r.locations = append(r.locations, d.c.location(u, f.After))
		}
		f.detail = imageDetail{repeats: r}
	}
	limit := Critical
	if rule == "images.digest-lost" && a.Registry == b.Registry {
		limit = Medium
	}
	if rule == "images.new" && (len(d.old) == 0 || slices.ContainsFunc(d.old, func(o imageUse) bool { return o.Registry == b.Registry })) {
		limit = Low // the operator is new, or already has images of this registry
	}
	d.c.add(rule, u.where, f, limit)
}

// location returns a finding that contains only the location of u. after is the new image, or "" if the image
// is removed.
func (c *comparison) location(u imageUse, after string) Finding {
	s := Finding{Field: u.at, Container: u.container, After: after, where: u.where, path: u.containerPath, explains: []fieldPath{u.field}}
	if u.where != nil {
		s.Object, s.Place = u.where.Ref(), Region{Path: u.where.Path, Removed: c.isBefore(u.where)}
	}
	return s
}
