package render

import (
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/kobj"
)

// atMirrors returns o with the images of mirrors.
func (t *tree) atMirrors(o Object) Object {
	if len(t.opt.Mirrors) == 0 {
		return o
	}
	o = kobj.Copy(o)
	mirrorImages(o, t.opt.Mirrors)
	return o
}

// mirrorImages replaces the images of an object's pods by their mirrors: those
// of containers, and those in environment variables and arguments, from where
// operators take what they run. It changes o.
func mirrorImages(o Object, mirrors []Mirror) {
	for _, pod := range []map[string]any{kobj.Map(o, "spec", "template", "spec"), kobj.Map(o, "spec", "jobTemplate", "spec", "template", "spec")} {
		for _, c := range kobj.Containers(pod) {
			if image := kobj.Text(c, "image"); image != "" {
				c["image"] = mirrored(image, imageref.Split(image).String(), mirrors)
			}
			mirrorValues(kobj.Items(c, "env"), mirrors)
			for _, key := range []string{"command", "args"} {
				list, _ := c[key].([]any)
				for i, v := range list {
					if s, ok := v.(string); ok {
						list[i] = mirroredText(s, mirrors)
					}
				}
			}
		}
	}
}

// mirrorValues replaces the images in the values of environment variables. It
// changes these.
func mirrorValues(env []map[string]any, mirrors []Mirror) {
	for _, e := range env {
		if value := kobj.Text(e, "value"); value != "" {
			e["value"] = mirroredText(value, mirrors)
		}
	}
}

// Mirrored returns where a cluster pulls an image from, given by its full name.
func Mirrored(image string, mirrors []Mirror) string { return mirrored(image, image, mirrors) }

// mirrored returns an image's reference at the most specific mirror of its full
// name, and as it stands where it has none.
func mirrored(stands, image string, mirrors []Mirror) string {
	best := -1
	for i, m := range mirrors {
		byDigest := strings.Contains(image, "@")
		if _, ok := imageref.Below(image, m.Source); !ok || m.DigestOnly && !byDigest || m.TagOnly && byDigest {
			continue
		}
		if best < 0 || len(m.Source) > len(mirrors[best].Source) {
			best = i
		}
	}
	if best < 0 {
		return stands
	}
	rest, _ := imageref.Below(image, mirrors[best].Source)
	return mirrors[best].Mirror + rest
}

// mirroredText replaces every image that stands in a text by itself.
func mirroredText(s string, mirrors []Mirror) string {
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, imageref.Ends)
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; strings.Contains(word, "/") && strings.ContainsAny(word, ":@") {
			out.WriteString(mirrored(word, word, mirrors))
		} else {
			out.WriteString(word)
		}
		s = s[end:]
		if s != "" {
			out.WriteString(s[:1])
			s = s[1:]
		}
	}
	return out.String()
}
