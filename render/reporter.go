package render

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/layout"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Reporter is the program that says in the cluster whether what was rendered
// is there and healthy.
type Reporter struct {
	Image          string // "registry.example.com/quayside-report@sha256:…"
	Namespace      string // "quayside-system"
	LeaderElection bool
}

const reporterName = "quayside-reporter" // of its objects, its package and its Lease

// reporter writes the reporter, and beside it what it is to look at and may: a file
// for each pin. Nothing of an operator ever waits for either.
func (t *tree) reporter() error {
	r := t.opt.Reporter
	if r.Image == "" || r.Namespace == "" {
		return errors.New("spec.reporter: image and namespace are needed to render it")
	}
	system, err := t.reporterObjects(*r)
	if err != nil {
		return err
	}
	if err := t.reporters(system); err != nil {
		return err
	}
	names := reporterFiles(system)
	for i, o := range system {
		if err := t.add(nil, layout.Reporter, names[i], o); err != nil {
			return err
		}
	}
	crds := []string{path.Join(layout.CRDs, sharedPackage)}
	if err := t.files.Add(path.Join(layout.Reporter, layout.Kustomization), kustomization(marked(slices.Sorted(slices.Values(names)), crds))); err != nil {
		return err
	}
	var files []string
	for _, in := range t.inBase() {
		objects := t.reported(in)
		if err := t.reporters(objects); err != nil {
			return err
		}
		file := installationFile(in)
		if err := t.add(nil, layout.Installations, file, objects...); err != nil {
			return err
		}
		files = append(files, file)
	}
	if t.engine() { // which reads a directory without one
		return nil
	}
	return t.kustomization(layout.Installations, files)
}

// reporters refuses objects of the reporter that an operator has too.
func (t *tree) reporters(objects []Object) error {
	for _, o := range objects {
		if i := slices.IndexFunc(t.objects, func(r Rendered) bool { return r.Object.Key() == o.Key() }); i >= 0 {
			return fmt.Errorf("spec.reporter: %s is the reporter's, and %s holds one too", o.Key(), t.objects[i].Path)
		}
	}
	return nil
}

// reporterFiles returns the names of the files of the reporter's objects.
func reporterFiles(objects []Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = fitName(nameRoom(layout.Reporter), fileName(o.Kind()+"-"+o.Name()))
	}
	return names
}

// installationFile returns the name of the file of what the reporter is to look at.
func installationFile(in Installation) string {
	return fitName(nameRoom(path.Join(layout.Clusters, strings.Repeat("n", 40), layout.Installations)), in.Namespace+"."+in.Spec.Package)
}

// reported returns the objects of an installation: what to look at, and the right
// to read it.
func (t *tree) reported(in Installation) []Object {
	spec := in.Spec.DeepCopy()
	spec.Objects = slices.DeleteFunc(spec.Objects, confidential)
	o := kobj.New(v1alpha1.Group+"/"+v1alpha1.Version, v1alpha1.Kind, in.Namespace, in.Name)
	o["spec"] = specFields(spec)
	owner := map[string]any{kobj.LabelPackage: labelValue(spec.Package), kobj.LabelNamespace: in.Namespace}
	if t.byCluster() {
		o = t.opt.profile.AdornInstallation(o)
	}
	out := []Object{owned(o, owner, spec.Version)}
	for _, o := range t.reporterRoles(in) {
		out = append(out, t.ownReporter(o))
	}
	return out
}

// confidential reports whether an object holds what opens doors: the right to
// see that a Secret is there would be the right to read every one of the
// cluster, whatever version it is asked for at, and OpenShift's tokens and
// clients are no better.
func confidential(ref v1alpha1.ObjectReference) bool {
	group := kobj.Group(ref.APIVersion)
	return group == "" && ref.Kind == "Secret" || group == "oauth.openshift.io"
}

// specFields returns a spec as an object's fields.
func specFields(spec v1alpha1.InstallationSpec) map[string]any {
	var objects []any
	for _, ref := range spec.Objects {
		o := texted("apiVersion", ref.APIVersion, "kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "version", ref.Version)
		var images []any
		for _, image := range ref.Images {
			images = append(images, texted("container", image.Container, "image", image.Image))
		}
		if images != nil {
			o["images"] = images
		}
		objects = append(objects, o)
	}
	out := texted("package", spec.Package, "version", spec.Version, "bundle", spec.Bundle, "channel", spec.Channel,
		"pin", spec.Pin, "operatorCondition", spec.OperatorCondition)
	if objects != nil {
		out["objects"] = objects
	}
	return out
}

// texted returns the pairs of names and values whose value is not empty.
func texted(pairs ...string) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = pairs[i+1]
		}
	}
	return out
}

// ownReporter returns o with the labels of the reporter.
func (t *tree) ownReporter(o Object) Object {
	return owned(o, map[string]any{kobj.LabelPackage: reporterName, kobj.LabelNamespace: t.opt.Reporter.Namespace}, sharedVersion)
}
