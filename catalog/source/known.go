package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
)

// Known is a catalog that has a short name, for its image is the same for everybody.
type Known struct {
	Name string     // "redhat"
	ID   catalog.ID // by which clusters have it, and so Subscriptions
	Is   string     // "what Red Hat supports"

	image string // with %s where the version of OpenShift stands
}

// WellKnown returns the catalogs that have a short name: those of OperatorHub.io
// and those that OpenShift comes with, under the names that clusters have them by
// (openshift/operator-marketplace, defaults; operator-lifecycle-manager, deploy/upstream).
func WellKnown() []Known {
	hub := func(name string) catalog.ID { return catalog.ID{Namespace: "openshift-marketplace", Name: name} }
	return []Known{
		{"operatorhubio", catalog.ID{Namespace: "olm", Name: "operatorhubio-catalog"}, "the community's, for any Kubernetes", "quay.io/operatorhubio/catalog:latest"},
		{"community", hub("community-operators"), "the community's, for OpenShift", "registry.redhat.io/redhat/community-operator-index:v%s"},
		{"certified", hub("certified-operators"), "partners', certified for OpenShift", "registry.redhat.io/redhat/certified-operator-index:v%s"},
		{"redhat", hub("redhat-operators"), "Red Hat's, for OpenShift", "registry.redhat.io/redhat/redhat-operator-index:v%s"},
	}
}

// FindKnown returns the catalog of a short name, behind which the version of
// OpenShift may stand ("redhat@4.20"), and where its content is. openshift is the
// version where the name has none; of longer ones the first two parts count. It is
// false where there is no such name.
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
			return k, "", true, fmt.Errorf("%s: catalog %s is the same for every version: leave out @%s", text, name, version)
		}
		return k, OfImage(k.image), true, nil
	}
	if !given {
		version = openshift
	}
	minor := regexp.MustCompile(`^v?([0-9]+\.[0-9]+)(\.[0-9]+)?$`).FindStringSubmatch(version)
	switch {
	case version == "":
		return k, "", true, fmt.Errorf("catalog %s is another one for each version of OpenShift: say which, as in %s@4.20", name, name)
	case minor == nil:
		return k, "", true, fmt.Errorf("%s: %q is no version of OpenShift: want one such as %s@4.20", text, version, name)
	}
	return k, OfImage(fmt.Sprintf(k.image, minor[1])), true, nil
}

// KnownNames returns the short names of catalogs.
func KnownNames() []string {
	var names []string
	for _, k := range WellKnown() {
		names = append(names, k.Name)
	}
	return names
}

// Suggested returns a name for a catalog that has none: the last part of where it
// is, without tag and digest.
func (r Ref) Suggested() string {
	_, rest, _ := strings.Cut(string(r), ":")
	rest, _, _ = strings.Cut(strings.TrimRight(rest, "/"), "@")
	name := rest[strings.LastIndex(rest, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	return strings.ToLower(name)
}
