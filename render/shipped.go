package render

import (
	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// shippedObjects returns the objects in the manifests of the bundle. It puts namespaced objects into the
// install namespace.
func shippedObjects(in *install) ([]Object, error) {
	var errs diag.List
	accounts := in.accounts()
	var out []Object
	for _, file := range in.b.Objects {
		o, err := in.atServedVersion(file)
		errs.Add(file.Pos(), err)
		if err != nil || k8s.IsCRD(o) {
			continue
		}
		o = plainMetadata(o)
		if o, err = in.checkTypes(file.Pos(), o); err != nil {
			errs.Add(file.Pos(), err)
			continue
		}
		if in.scopes.namespaced(o.Group(), o.Kind()) {
			o = k8s.With(o, in.pin.Namespace, "metadata", "namespace")
		} else {
			o = k8s.Without(o, "metadata", "namespace")
		}
		o = in.distinct(file.Pos(), in.withOwnReferences(file, o))
		switch {
		case o.Is(k8s.RBACGroup, "RoleBinding"), o.Is(k8s.RBACGroup, "ClusterRoleBinding"):
			o = in.withOwnSubjects(file, o, accounts)
		case o.Is("", "ServiceAccount"):
			o = withPullSecrets(o, in.opt.ImagePullSecrets)
		}
		out = append(out, o)
	}
	return out, errs.Err()
}

// withOwnSubjects returns a binding in which the ServiceAccounts of the bundle have the install namespace,
// whichever namespace they have in the file. It adds a warning for other ServiceAccounts.
func (in *install) withOwnSubjects(file bundle.ManifestObject, o Object, accounts map[string]bool) Object {
	list := k8s.List(o, "subjects")
	changed := make([]any, len(list))
	for i, v := range list {
		changed[i] = v
		s, ok := v.(map[string]any)
		switch {
		case !ok || k8s.Text(s, "kind") != "ServiceAccount":
		case accounts[k8s.Text(s, "name")]:
			changed[i] = k8s.With(s, in.pin.Namespace, "namespace")
		default:
			in.warnOutside(file, "ServiceAccount", k8s.Text(s, "name"), k8s.Text(s, "namespace"))
		}
	}
	if len(list) == 0 {
		return o
	}
	return k8s.With(o, changed, "subjects")
}

// atServedVersion returns the object in a file with an API version that the target Kubernetes serves. If the
// object has no apiVersion, it adds one.
func (in *install) atServedVersion(file bundle.ManifestObject) (Object, error) {
	o := file.Object
	if o.APIVersion() == "" {
		version, ok := olmKinds()[o.Kind()]
		if !ok {
			return nil, diag.Errorf(file.Pos(), "document %d: %s %q: apiVersion is missing", file.Document+1, file.Kind(), file.Name())
		}
		in.warnMinor(file.Pos(), "manifest-without-version", "%s %q has no apiVersion, %s is assumed", file.Kind(), file.Name(), version)
		o = k8s.With(o, version, "apiVersion")
	}
	return in.convertToServed(file, o)
}

// olmKinds returns the apiVersion of each kind that OLM installs with a fixed apiVersion, whichever apiVersion
// is in the file.
func olmKinds() map[string]string {
	return map[string]string{
		"Secret": "v1", "ConfigMap": "v1", "ServiceAccount": "v1", "Service": "v1",
		"Role": k8s.RBACGroup + "/v1", "RoleBinding": k8s.RBACGroup + "/v1", "ClusterRole": k8s.RBACGroup + "/v1", "ClusterRoleBinding": k8s.RBACGroup + "/v1",
		"CustomResourceDefinition": "apiextensions.k8s.io/v1",
	}
}
