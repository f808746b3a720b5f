package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

const (
	// maxPath is the maximum length of a path in the tree, in bytes. Windows supports about 250,
	// including the path of the checkout.
	maxPath = 120

	// minName is the length that file names may have in every directory. In a directory with less
	// space, the path of the kustomization is too long anyway.
	minName = len(layout.Kustomization)

	extension = ".yaml"
)

// maxFileName returns the maximum length of file names in a directory of the tree.
func maxFileName(dir string) int { return max(maxPath-len(dir)-1, minName) }

// fitName returns the name of a YAML file with at most limit bytes. It shortens a long base to its
// beginning and a digest.
func fitName(limit int, base string) string { return k8s.Fit(base, limit-len(extension)) + extension }

// aggregatedFile returns the name of the file with an operator's aggregated roles: up to four for each
// API.
func aggregatedFile(limit int) string { return fitName(limit, "aggregated-roles") }

// naming derives the file names of objects in one directory. Apart from collisions, a name depends
// only on the object, so that adding or removing other objects renames no file.
type naming struct {
	maxLength int    // maximum length of a name
	namespace string // install namespace and package if the directory's path contains them, or ""
	pkg       string
}

// fileNames returns a file name for each object. The names are unique, also on file systems that
// ignore case.
func fileNames(n naming, objects []Object) []string {
	names := make([]string, len(objects))
	count := map[string]int{aggregatedFile(n.maxLength): 1}
	for i, o := range objects {
		names[i] = fitName(n.maxLength, n.baseName(o))
		count[names[i]]++
	}
	for i, o := range objects {
		if count[names[i]] > 1 { // kinds that differ only in case, or equal digests
			names[i] = keyDigest(o, 6) + extension
		}
	}
	return names
}

// baseName returns the name of an object's file without its extension:
//
//	kind-name                  in the install namespace, or cluster-scoped
//	kind_rest                  rest of a name that starts with the package (in the install
//	                           namespace), or with install namespace and package (elsewhere)
//	kind-name_namespace        in another namespace
//	kind-name__group           the kind is ambiguous without its group
//	kind-name-0123abcd         a part contains characters that are not allowed in file names
func (n naming) baseName(o Object) string {
	prefix, elsewhere := n.pkg+".", o.Namespace() != n.namespace
	if elsewhere {
		prefix = n.namespace + "." + prefix
	}
	joint, name := "-", o.Name()
	if rest, is := strings.CutPrefix(name, prefix); is && n.pkg != "" && rest != "" {
		joint, name = "_", rest
	}
	base, lossy := strings.ToLower(o.Kind()), false
	add := func(joint, part string) {
		file := fileName(part)
		base, lossy = base+joint+file, lossy || file != part
	}
	add(joint, name)
	if elsewhere && o.Namespace() != "" {
		add("_", o.Namespace())
	}
	if !isUnambiguousKind(o) {
		add("__", o.Group())
	}
	if lossy {
		base += "-" + keyDigest(o, 4)
	}
	return base
}

// patchFile returns the file name of a patch. All patches are for Deployments.
//
//	patch-name.yaml            in the install namespace
//	patch_rest.yaml            the name starts with the package, which is omitted
//	patch-name_namespace.yaml  in another namespace
//	patch-012345.yaml          too little space for a readable beginning of the name
func (n naming) patchFile(o Object) string {
	base := "patch-" + fileName(o.Name())
	if rest, is := strings.CutPrefix(o.Name(), n.pkg+"-"); is && n.pkg != "" && rest != "" {
		base = "patch_" + fileName(rest)
	}
	if o.Namespace() != n.namespace {
		base += "_" + fileName(o.Namespace())
	}
	if len(base+extension) > n.maxLength && n.maxLength < len("patch-readable-01234567.yaml") {
		base = "patch-" + keyDigest(o, 3)
	}
	return fitName(n.maxLength, base)
}

// keyDigest returns the first bytes of the digest of an object's key.
func keyDigest(o Object, bytes int) string {
	sum := sha256.Sum256([]byte(o.Key().String()))
	return hex.EncodeToString(sum[:bytes])
}

// isUnambiguousKind reports whether the kind of an object is unambiguous without its group.
func isUnambiguousKind(o Object) bool {
	if k8s.IsBuiltinGroup(o.Group()) {
		// Other groups have the same kinds as these two.
		return o.Group() != "extensions" && o.Group() != "events.k8s.io"
	}
	return slices.Contains(map[string][]string{
		"cert-manager.io":       {"Certificate", "ClusterIssuer", "Issuer"},
		"monitoring.coreos.com": {"PodMonitor", "PrometheusRule", "ServiceMonitor"},
		k8s.OLMGroup:            {"OperatorCondition"},
	}[o.Group()], o.Kind())
}

// fileName returns s in lower case, with "-" for all characters except a-z, 0-9, "-" and ".".
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}
