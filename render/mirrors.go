package render

import (
	"strings"

	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/k8s"
)

// mirrorAll replaces the images in the Deployments of operators with mirrors.
func mirrorAll(operators []operator, mirrors []Mirror) {
	for i := range operators {
		for j, o := range operators[i].objects {
			operators[i].objects[j] = withMirrors(o, mirrors)
		}
	}
}

// withMirrors returns o with the images of its pods replaced by mirrors: the images of containers and volumes,
// and the images in environment variables and arguments, because operators run those. See [k8s.PodTemplates].
func withMirrors(o Object, mirrors []Mirror) Object {
	if len(mirrors) == 0 {
		return o
	}
	return k8s.MapPods(o, func(pod map[string]any) map[string]any {
		pod = k8s.Copy(pod)
		for _, c := range k8s.Containers(pod) {
			mirrorField(c, "image", mirrors)
			mirrorValues(k8s.Items(c, "env"), mirrors)
			for _, key := range []string{"command", "args"} {
				list, _ := c[key].([]any)
				for i, v := range list {
					if s, ok := v.(string); ok {
						list[i] = mirrorText(s, mirrors)
					}
				}
			}
		}
		for _, v := range k8s.Items(pod, "volumes") {
			mirrorField(k8s.Map(v, "image"), "reference", mirrors)
		}
		return pod
	})
}

// mirrorField replaces the image in a field with a mirror, in place.
func mirrorField(m map[string]any, field string, mirrors []Mirror) {
	if image := k8s.Text(m, field); image != "" {
		m[field] = mirrorImage(image, imageref.Split(image).String(), mirrors)
	}
}

// mirrorValues replaces images in the values of environment variables with mirrors, in place.
func mirrorValues(env []map[string]any, mirrors []Mirror) {
	for _, e := range env {
		if value := k8s.Text(e, "value"); value != "" {
			e["value"] = mirrorText(value, mirrors)
		}
	}
}

// Mirrored returns the reference that a cluster pulls for image. image must be a full reference.
func Mirrored(image string, mirrors []Mirror) string { return mirrorImage(image, image, mirrors) }

// Original reverses Mirrored. image is a reference to a mirror, and the result is the original image. If image is not
// at a mirror, Original returns image itself. If several rules match, it applies the first rule. It ignores rules for
// all hosts of a domain ("*.example.com"), because their mirrors do not determine the original host.
func Original(image string, mirrors []Mirror) string {
	for _, m := range mirrors {
		if rest, ok := imageref.CutPrefix(image, m.Mirror); ok && !strings.HasPrefix(m.Source, "*") && Mirrored(m.Source+rest, mirrors) == image {
			return m.Source + rest
		}
	}
	return image
}

// mirrorImage returns the reference to image at the mirror whose source matches most specifically. If no mirror
// matches, it returns original. image is a full reference, and original is the same reference as the user wrote it.
func mirrorImage(original, image string, mirrors []Mirror) string {
	best := -1
	for i, m := range mirrors {
		byDigest := strings.Contains(image, "@")
		if _, ok := imageref.CutPrefix(image, m.Source); !ok || m.DigestOnly && !byDigest || m.TagOnly && byDigest {
			continue
		}
		if best < 0 || len(m.Source) > len(mirrors[best].Source) {
			best = i
		}
	}
	if best < 0 {
		return original
	}
	rest, _ := imageref.CutPrefix(image, mirrors[best].Source)
	return mirrors[best].Mirror + rest
}

// mirrorText replaces the image references in a text by mirrors. A reference must be a separate word.
func mirrorText(s string, mirrors []Mirror) string {
	var out strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, imageref.IsDelimiter)
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; strings.Contains(word, "/") && strings.ContainsAny(word, ":@") {
			out.WriteString(mirrorImage(word, word, mirrors))
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
