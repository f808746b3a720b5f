package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/layout"
)

// Reporter configures the reporter, a program in the cluster that reports whether the rendered
// objects exist and are healthy.
type Reporter struct {
	Image          string // image with digest, such as "registry.example.com/quayside-report@sha256:…"
	Namespace      string // such as "quayside-system"
	LeaderElection bool
}

const reporterName = "quayside-reporter" // reporterName is the name of the reporter's objects, its package and its Lease.

// writeReporter writes the objects of the reporter. For each pin it also writes a file with the Installation,
// and with permissions to read the objects that the Installation lists. Objects of operators never wait for the
// reporter.
func (t *tree) writeReporter() error {
	r := t.opt.Reporter
	if r.Image == "" || r.Namespace == "" {
		return errors.New("spec.reporter: image and namespace are required")
	}
	namespace, err := t.reporterNamespace(r.Namespace)
	if err != nil {
		return err
	}
	system := r.objects(namespace, t.opt.ImagePullSecrets)
	if err := checkReporterObjects(system, t.objects); err != nil {
		return err
	}
	names := reporterFiles(system)
	for i, o := range system {
		if err := t.add(nil, layout.Reporter, names[i], o); err != nil {
			return err
		}
	}
	crds := []string{path.Join(layout.CRDs, sharedPackage)}
	if err := t.files.Add(path.Join(layout.Reporter, layout.Kustomization), encodeKustomization(annotatedKustomization(slices.Sorted(slices.Values(names)), crds))); err != nil {
		return err
	}
	var files []string
	for _, in := range t.baseInstallations() {
		objects := t.installationObjects(in)
		if err := checkReporterObjects(objects, t.objects); err != nil {
			return err
		}
		file := installationFile(in)
		if err := t.add(nil, layout.Installations, file, objects...); err != nil {
			return err
		}
		files = append(files, file)
	}
	if t.opt.hasEngine() { // engines apply this directory without a kustomization
		return nil
	}
	return t.writeKustomization(layout.Installations, files)
}

// checkReporterObjects returns an error if an object of the reporter is already rendered for an
// operator.
func checkReporterObjects(objects []Object, rendered []Rendered) error {
	for _, o := range objects {
		if i := slices.IndexFunc(rendered, func(r Rendered) bool { return r.Object.Key() == o.Key() }); i >= 0 {
			return fmt.Errorf("spec.reporter: %s belongs to the reporter, but is also in %s", o.Key(), rendered[i].Path)
		}
	}
	return nil
}

// reporterFiles returns the file names of the reporter's objects.
func reporterFiles(objects []Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = fitName(maxFileName(layout.Reporter), fileName(o.Kind()+"-"+o.Name()))
	}
	return names
}

// installationFile returns the name of the file with an Installation and its permissions.
func installationFile(in Installation) string {
	return fitName(maxFileName(path.Join(layout.Clusters, strings.Repeat("n", 40), layout.Installations)), in.Namespace+"."+in.Spec.Package)
}

// installationObjects returns the Installation object and the permissions to read the objects that it lists.
// References to confidential objects are omitted.
func (t *tree) installationObjects(in Installation) []Object {
	spec := in.Spec.DeepCopy()
	spec.Objects = slices.DeleteFunc(spec.Objects, isConfidential)
	o := k8s.New(v1alpha1.Group+"/"+v1alpha1.Version, v1alpha1.Kind, in.Namespace, in.Name)
	o["spec"] = specFields(spec)
	owner := map[string]any{k8s.LabelPackage: k8s.LabelValue(spec.Package), k8s.LabelNamespace: in.Namespace}
	if t.opt.byCluster() {
		o = t.opt.profile.AnnotateInstallation(o)
	}
	out := []Object{withOwner(o, owner, spec.Version)}
	for _, o := range t.opt.Reporter.roles(in, t.plurals()) {
		out = append(out, t.opt.Reporter.own(o))
	}
	return out
}

// isConfidential reports whether an object contains credentials: a Secret, or a token or OAuth client of
// OpenShift. To observe one Secret, the reporter would need permission to read every Secret in the cluster.
func isConfidential(ref v1alpha1.ObjectReference) bool {
	group := k8s.Group(ref.APIVersion)
	return group == "" && ref.Kind == "Secret" || group == "oauth.openshift.io"
}

// specFields returns the spec of an Installation as a mapping.
func specFields(spec v1alpha1.InstallationSpec) map[string]any {
	var objects []any
	for _, ref := range spec.Objects {
		o := nonEmptyFields("apiVersion", ref.APIVersion, "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "version", ref.Version)
		var images []any
		for _, image := range ref.Images {
			images = append(images, nonEmptyFields("container", image.Container, "image", image.Image))
		}
		if images != nil {
			o["images"] = images
		}
		objects = append(objects, o)
	}
	out := nonEmptyFields("package", spec.Package, "version", spec.Version, "bundle", spec.Bundle, "channel", spec.Channel,
		"bundleDigest", spec.BundleDigest, "pin", spec.Pin, "operatorCondition", spec.OperatorCondition)
	if objects != nil {
		out["objects"] = objects
	}
	return out
}

// nonEmptyFields converts pairs of name and value to a mapping. It omits empty values.
func nonEmptyFields(pairs ...string) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

// own returns o with the reporter's labels.
func (r *Reporter) own(o Object) Object {
	return withOwner(o, map[string]any{k8s.LabelPackage: reporterName, k8s.LabelNamespace: r.Namespace}, sharedVersion)
}
