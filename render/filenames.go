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
	// maxPath is the maximum length of a path in the tree in bytes. Windows permits about 250,
	// including the path of the checkout.
	maxPath = 120

	// minName is the minimum result of maxFileName. If so little space is left in a directory, the path of its
	// kustomization already exceeds maxPath.
	minName = len(layout.Kustomization)

	extension = ".yaml"
)

// maxFileName returns the maximum length of file names in a directory of the tree.
func maxFileName(dir string) int { return max(maxPath-len(dir)-1, minName) }

// fitName returns base with the extension of YAML files. The result has at most limit bytes. If base is too
// long, fitName keeps the start of base and appends a digest.
func fitName(limit int, base string) string { return k8s.Fit(base, limit-len(extension)) + extension }

// aggregatedFile returns the name of the file with the aggregated roles of an operator. The roles share a file,
// because there are up to four roles for each API.
func aggregatedFile(limit int) string { return fitName(limit, "aggregated-roles") }

// naming determines the file names of objects in one directory. Unless names collide, the name of a file
// depends only on its object. So an object can be added or removed without renaming other files.
type naming struct {
	maxLength int    // maximum length of a name in bytes
	namespace string // install namespace and package if the path of the directory contains them; otherwise ""
	pkg       string
}

// fileNames returns a file name for each object. The names are unique even if case is ignored.
func fileNames(n naming, objects []Object) []string {
	names := make([]string, len(objects))
	count := map[string]int{aggregatedFile(n.maxLength): 1}
	for i, o := range objects {
		names[i] = fitName(n.maxLength, n.baseName(o))
		count[names[i]]++
	}
	for i, o := range objects {
		if count[names[i]] > 1 { // two kinds differ only in case, or two digests are equal
			names[i] = keyDigest(o, 6) + extension
		}
	}
	return names
}

// baseName returns the file name of an object, without the extension:
//
//	kind-name                  in the install namespace, or cluster-scoped
//	kind_rest                  if the name starts with the package (in the install namespace), or with
//	                           install namespace and package (elsewhere); rest is the rest of the name
//	kind-name_namespace        in another namespace
//	kind-name__group           if the kind is ambiguous without its group
//	kind-name-0123abcd         if a part contains characters that are not allowed in file names
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
//	patch_rest.yaml            if the name starts with the package, which is omitted
//	patch-name_namespace.yaml  in another namespace
//	patch-012345.yaml          if there is too little space for a readable part of the name
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

// keyDigest returns the given number of bytes of the digest of an object's key, in hexadecimal.
func keyDigest(o Object, bytes int) string {
	sum := sha256.Sum256([]byte(o.Key().String()))
	return hex.EncodeToString(sum[:bytes])
}

// isUnambiguousKind reports whether the kind of an object is unambiguous without its group.
func isUnambiguousKind(o Object) bool {
	if k8s.IsBuiltinGroup(o.Group()) {
		// Kinds of these two groups also exist in other groups.
		return o.Group() != "extensions" && o.Group() != "events.k8s.io"
	}
	return slices.Contains(map[string][]string{
		"cert-manager.io":       {"Certificate", "ClusterIssuer", "Issuer"},
		"monitoring.coreos.com": {"PodMonitor", "PrometheusRule", "ServiceMonitor"},
		k8s.OLMGroup:            {"OperatorCondition"},
	}[o.Group()], o.Kind())
}

// fileName returns s in lower case. It replaces all characters except a-z, 0-9, "-" and "." with
// "-".
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}
