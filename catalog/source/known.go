package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// Known is a public catalog that users can refer to by a short name.
type Known struct {
	Name        string     // "redhat"
	ID          catalog.ID // ID of its CatalogSource in clusters, to which Subscriptions refer
	Description string     // "community operators for OpenShift"

	image string // reference; %s stands for the version of OpenShift
}

// WellKnown returns the public catalogs with a short name: OperatorHub.io and the default catalogs of
// OpenShift. The IDs equal the IDs of the CatalogSources on clusters (openshift/operator-marketplace,
// defaults; operator-lifecycle-manager, deploy/upstream).
func WellKnown() []Known {
	hub := func(name string) catalog.ID { return catalog.ID{Namespace: "openshift-marketplace", Name: name} }
	return []Known{
		{"operatorhubio", catalog.ID{Namespace: "olm", Name: "operatorhubio-catalog"}, "community operators for any Kubernetes", "quay.io/operatorhubio/catalog:latest"},
		{"community", hub("community-operators"), "community operators for OpenShift", "registry.redhat.io/redhat/community-operator-index:v%s"},
		{"certified", hub("certified-operators"), "certified operators of partners for OpenShift", "registry.redhat.io/redhat/certified-operator-index:v%s"},
		{"redhat", hub("redhat-operators"), "Red Hat's operators for OpenShift", "registry.redhat.io/redhat/redhat-operator-index:v%s"},
	}
}

// FindKnown returns the public catalog with a short name, and the reference to its image. ok is false if text
// is not a short name. If the image depends on the version of OpenShift, the version comes from text, such as
// "redhat@4.20", or else from the argument openshift. It is then an error if the version is missing or invalid.
func FindKnown(text, openshift string) (k Known, r Ref, ok bool, err error) {
	name, version, given := strings.Cut(text, "@")
	all := WellKnown()
	i := slices.IndexFunc(all, func(k Known) bool { return k.Name == name })
	if i < 0 {
		return Known{}, "", false, nil
	}
	k = all[i]
	if !strings.Contains(k.image, "%s") {
		if given {
			return k, "", true, fmt.Errorf("%s: catalog %s does not depend on the OpenShift version: remove @%s", text, name, version)
		}
		return k, ImageRef(k.image), true, nil
	}
	if !given {
		version = openshift
	}
	if version == "" {
		return k, "", true, fmt.Errorf("catalog %s has one version per OpenShift release: choose one, such as %s@4.20", name, name)
	}
	if r = k.Image(version); r == "" {
		return k, "", true, fmt.Errorf("%s: %q is not a version of OpenShift: specify a version, such as %s@4.20", text, version, name)
	}
	return k, r, true, nil
}

// Image returns the reference to the catalog's image for a version of OpenShift: MAJOR.MINOR, or a full
// version. It returns "" if the image depends on the version, and the version is missing or invalid.
func (k Known) Image(openshift string) Ref {
	if !strings.Contains(k.image, "%s") {
		return ImageRef(k.image)
	}
	minor := regexp.MustCompile(`^v?([0-9]+\.[0-9]+)(\.[0-9]+)?$`).FindStringSubmatch(openshift)
	if minor == nil {
		return ""
	}
	return ImageRef(fmt.Sprintf(k.image, minor[1]))
}

// KnownAs returns the public catalog with this ID, and whether it exists.
func KnownAs(id catalog.ID) (Known, bool) {
	all := WellKnown()
	i := slices.IndexFunc(all, func(k Known) bool { return k.ID == id })
	if i < 0 {
		return Known{}, false
	}
	return all[i], true
}

// KnownNames returns the short names of all public catalogs.
func KnownNames() []string {
	var names []string
	for _, k := range WellKnown() {
		names = append(names, k.Name)
	}
	return names
}

// SuggestedName returns a name for a catalog that the user has not named: the last element of the
// path, without tag and digest.
func (r Ref) SuggestedName() string {
	_, rest, _ := strings.Cut(string(r), ":")
	rest, _, _ = strings.Cut(strings.TrimRight(rest, "/"), "@")
	name := rest[strings.LastIndex(rest, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return strings.ToLower(name)
}
