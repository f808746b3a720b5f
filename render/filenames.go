package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
)

const (
	// maxPath is the length of the paths of a tree in bytes: with the path of a
	// checkout before it, Windows takes about 250.
	maxPath = 120

	// minName is the length that file names may have in any directory: where it is
	// more than is left, the path of the kustomization is too long already.
	minName = len(layout.Kustomization)

	extension = ".yaml"
)

// nameRoom returns how long the file names in a directory of the tree may be.
func nameRoom(dir string) int { return max(maxPath-len(dir)-1, minName) }

// fitName returns a name for a YAML file of at most room bytes: base, or its
// beginning and a digest of it.
func fitName(room int, base string) string { return kobj.Fit(base, room-len(extension)) + extension }

// aggregatedFile returns the name of the file of an operator's aggregated roles:
// there are up to four for each API, and they differ in little.
func aggregatedFile(room int) string { return fitName(room, "aggregated-roles") }

// naming gives objects their file names in one directory. The name of an object
// depends on the object alone, so that adding or removing another one renames no
// file.
type naming struct {
	room      int    // length of a name
	namespace string // install namespace and package, which stand in the path of the directory, or ""
	pkg       string
}

// fileNames returns a file name for each object, all of them different where case
// does not matter.
func fileNames(n naming, objects []Object) []string {
	names := make([]string, len(objects))
	count := map[string]int{aggregatedFile(n.room): 1}
	for i, o := range objects {
		names[i] = fitName(n.room, n.base(o))
		count[names[i]]++
	}
	for i, o := range objects {
		if count[names[i]] > 1 { // kinds that differ in case alone, or equal digests
			names[i] = keyDigest(o, 6) + extension
		}
	}
	return names
}

// base returns the name of an object's file without its extension:
//
//	kind-name                  in the install namespace, or in none
//	kind_rest                  the name begins with the install namespace and the package, or
//	                           in the install namespace with the package: what follows these
//	kind-name_namespace        in another namespace
//	kind-name__group           the kind alone does not tell the group
//	kind-name-0123abcd         a part of it holds characters that a file name should not have
func (n naming) base(o Object) string {
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
	if !tellsGroup(o) {
		add("__", o.Group())
	}
	if lossy {
		base += "-" + keyDigest(o, 4)
	}
	return base
}

// patchFile returns the name of the file of a patch. All patches are for Deployments.
//
//	patch-name.yaml            in the install namespace
//	patch_rest.yaml            the name begins with the package: the rest of it
//	patch-name_namespace.yaml  in another namespace
//	patch-012345.yaml          there is too little room for a beginning of the name that is readable
func (n naming) patchFile(o Object) string {
	base := "patch-" + fileName(o.Name())
	if rest, is := strings.CutPrefix(o.Name(), n.pkg+"-"); is && n.pkg != "" && rest != "" {
		base = "patch_" + fileName(rest)
	}
	if o.Namespace() != n.namespace {
		base += "_" + fileName(o.Namespace())
	}
	if len(base+extension) > n.room && n.room < len("patch-readable-01234567.yaml") {
		base = "patch-" + keyDigest(o, 3)
	}
	return fitName(n.room, base)
}

// keyDigest returns the first bytes of the digest of an object's key.
func keyDigest(o Object, bytes int) string {
	sum := sha256.Sum256([]byte(o.Key().String()))
	return hex.EncodeToString(sum[:bytes])
}

// tellsGroup reports whether an object has the group that everybody thinks of by
// its kind.
func tellsGroup(o Object) bool {
	if kinds.Builtin(o.Group()) {
		return o.Group() != "extensions" && o.Group() != "events.k8s.io" // whose kinds other groups have too
	}
	return slices.Contains(map[string][]string{
		"cert-manager.io":       {"Certificate", "ClusterIssuer", "Issuer"},
		"monitoring.coreos.com": {"PodMonitor", "PrometheusRule", "ServiceMonitor"},
		conditionGroup:          {"OperatorCondition"},
	}[o.Group()], o.Kind())
}

// fileName returns s in lower case, with "-" for what is not legal in a file
// name everywhere.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}
