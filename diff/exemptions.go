package diff

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/quayside/quayside/internal/k8s"
)

// exemption is a kind of change that is never reported.
type exemption struct {
	description, reason string
	matches             func(fieldChange) bool
}

// exemptions returns all kinds of field changes that are never reported.
func exemptions() []exemption {
	return []exemption{
		{"`quayside.dev/version` of a Deployment or CRD with the operator's version", "quayside's own label and annotation", func(f fieldChange) bool {
			return len(f.path) == 3 && f.path.isLabel(k8s.LabelVersion) && f.isWrittenVersion()
		}},
		{"`app.kubernetes.io/version` with the operator's version", "repeats the version of the operator", func(f fieldChange) bool {
			return f.path.isLabel("app.kubernetes.io/version") && f.isOperatorVersion()
		}},
		{"`helm.sh/chart` that ends with the operator's version", "repeats the version of the operator", func(f fieldChange) bool {
			return f.path.isLabel("helm.sh/chart") && f.isOperatorVersion()
		}},
		{"`controller-gen.kubebuilder.io/version` of a CRD", "the version of the author's tool", func(f fieldChange) bool {
			return f.isOf(crdKind) && f.path.isLabel("controller-gen.kubebuilder.io/version") && isToolVersion(f.before) && isToolVersion(f.after)
		}},
		{"`description`, `title`, `example` and `externalDocs` in the schema of a CRD", "documentation", func(f fieldChange) bool {
			return f.isOf(crdKind) && f.path.isSchemaKeyword() && slices.Contains([]string{"description", "title", "example", "externalDocs"}, f.path.last())
		}},
		{"adding or removing a default value in the schema of a CRD: `x-kubernetes-list-type: atomic`, `x-kubernetes-map-type: granular`, a limit of 0, or a boolean `false`", "the default of the API server", func(f fieldChange) bool {
			return f.isOf(crdKind) && f.path.isSchemaKeyword() && isSchemaDefault(f.path.last(), f.before) && isSchemaDefault(f.path.last(), f.after)
		}},
		{"`prefix` and `overlays` in `clusters.yaml`", "their effect on the cluster is compared", func(f fieldChange) bool {
			_, field := f.path.element("data")
			return f.isOf(fileKind) && len(f.path) == 3 && (field == "prefix" || field == "overlays") && strings.HasSuffix(f.objects.after.Path, "clusters.yaml")
		}},
		{"`status` of a CRD", "the API server ignores it in manifests", func(f fieldChange) bool {
			return f.isOf(crdKind) && len(f.path) == 1 && f.path.last() == "status"
		}},
		{"`metadata.creationTimestamp: null`", "generators of manifests write it", func(f fieldChange) bool {
			return len(f.path) == 2 && f.path.key(0) == "metadata" && f.path.last() == "creationTimestamp" && f.before == nil && f.after == nil
		}},
	}
}

// isWrittenVersion reports whether each of the two values is absent, or a version that quayside writes on the object.
func (f fieldChange) isWrittenVersion() bool {
	was, is := f.texts()
	return (f.before == nil || f.c.before.writesVersion(f.objects.before, was)) && (f.after == nil || f.c.after.writesVersion(f.objects.after, is))
}

// isToolVersion reports whether v is a plain version such as "v0.17.2", or nil.
func isToolVersion(v any) bool {
	text, _ := v.(string)
	_, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	return v == nil || err == nil || text == "(devel)" || text == "(unknown)"
}

// isSchemaDefault reports whether v is the default of a schema keyword, or nil.
func isSchemaDefault(keyword string, v any) bool {
	switch keyword {
	case "x-kubernetes-list-type":
		return v == nil || v == "atomic"
	case "x-kubernetes-map-type":
		return v == nil || v == "granular"
	case "minLength", "minItems", "minProperties":
		return v == nil || v == int64(0)
	case "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "nullable":
		return v == nil || v == false
	}
	return false
}

// isOperatorVersion reports whether the old value ends with the old version of the operator, the new value ends
// with the new version, and the rest is equal.
func (f fieldChange) isOperatorVersion() bool {
	operator := f.objects.after.Operator
	was, had := f.c.before.pin(operator)
	is, has := f.c.after.pin(operator)
	cutVersion := func(v any, version string) (prefix string, ok bool) {
		text, _ := v.(string)
		text = strings.ReplaceAll(text, "_", "+") // a label value has "_" for "+"
		return strings.CutSuffix(text, strings.TrimPrefix(version, "v"))
	}
	x, ok1 := cutVersion(f.before, was.Version)
	y, ok2 := cutVersion(f.after, is.Version)
	return had && has && ok1 && ok2 && x == y && (x == "" || x == "v" || strings.HasSuffix(x, "-") || strings.HasSuffix(x, "-v"))
}
