package render

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/report/v1alpha1"
)

// Reporter is the program that says in the cluster whether what was rendered
// is there and healthy.
type Reporter struct {
	Image          string // "registry.example.com/quayside-report@sha256:…"
	Namespace      string // "quayside-system"
	LeaderElection bool
}

const (
	reporterName   = "quayside-reporter" // of its objects, its package and its Lease
	reporterDir    = "reporter"
	reporterSystem = "system"        // the program
	reporterPins   = "installations" // what it is to look at, and may
)

// reporterStarter is the part of the reporter's overlay that is the user's own.
const reporterStarter = `# This file is yours: quayside wrote it once and leaves it alone from now on.
# The reporter as it is rendered for this cluster is in generated/; put your own
# patches here or beside this file. What the reporter does never changes how an
# operator is applied.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- generated
`

// reporter writes the reporter: its base, and an overlay a cluster that is no
// part of the operators' overlay, so that nothing of an operator ever waits for
// the reporter.
func (t *tree) reporter() error {
	r := t.opt.Reporter
	if r.Image == "" || r.Namespace == "" {
		return errors.New("spec.reporter: image and namespace are needed to render it")
	}
	system, err := t.reporterObjects(*r)
	if err != nil {
		return err
	}
	pins := t.reported(t.inBase())
	for _, part := range []struct {
		dir     string
		objects []Object
	}{{reporterSystem, system}, {reporterPins, pins}} {
		for _, o := range part.objects {
			if i := slices.IndexFunc(t.objects, func(r Rendered) bool { return r.Object.Key() == o.Key() }); i >= 0 {
				return fmt.Errorf("spec.reporter: %s is the reporter's, and %s holds one too", o.Key(), t.objects[i].Path)
			}
		}
		dir := path.Join(reporterDir, part.dir)
		names := reporterFiles(dir, part.objects)
		for i, o := range part.objects {
			if err := t.add(dir, names[i], o); err != nil {
				return err
			}
		}
		if err := t.kustomization(dir, slices.Sorted(slices.Values(names))); err != nil {
			return err
		}
	}
	if err := t.kustomization(reporterDir, []string{reporterSystem, reporterPins}); err != nil {
		return err
	}
	for _, c := range t.opt.Clusters {
		dir := path.Join("clusters", c.Name, reporterDir)
		if err := t.files.AddStarter(path.Join(dir, kustomizationFile), []byte(reporterStarter)); err != nil {
			return err
		}
		own, err := t.inOverlay(c)
		if err != nil {
			return fmt.Errorf("rendering cluster %q: %w", c.Name, err)
		}
		if err := t.reporterOverlay(path.Join(dir, "generated"), pins, t.reported(own)); err != nil {
			return err
		}
	}
	return nil
}

// reporterOverlay writes the generated part of a cluster's overlay: the base,
// or where the cluster expects something else, files of its own.
func (t *tree) reporterOverlay(dir string, base, own []Object) error {
	const up = "../../../../" + reporterDir
	if slices.EqualFunc(base, own, func(a, b Object) bool { return kobj.Equal(a, b) }) {
		return t.kustomization(dir, []string{up})
	}
	names := reporterFiles(dir, own)
	for i, o := range own {
		if err := t.files.Add(path.Join(dir, names[i]), yamlnode.Encode(t.adorn(o))); err != nil {
			return err
		}
	}
	return t.kustomization(dir, append([]string{path.Join(up, reporterSystem)}, slices.Sorted(slices.Values(names))...))
}

// reporterFiles returns the names of files in a directory of the tree: the same package may be installed
// in two namespaces.
func reporterFiles(dir string, objects []Object) []string {
	names := make([]string, len(objects))
	for i, o := range objects {
		name := o.Kind() + "-" + o.Name()
		if o.Is(v1alpha1.Group, v1alpha1.Kind) {
			name = o.Kind() + "-" + o.Namespace() + "." + o.Name()
		}
		names[i] = fitName(nameRoom(dir), fileName(name))
	}
	return names
}

// reported returns the objects of the installations: one Installation each,
// and the right to read what they name.
func (t *tree) reported(all []Installation) []Object {
	var out []Object
	for _, in := range all {
		spec := in.Spec.DeepCopy()
		spec.Objects = slices.DeleteFunc(spec.Objects, confidential)
		o := kobj.New(v1alpha1.Group+"/"+v1alpha1.Version, v1alpha1.Kind, in.Namespace, in.Name)
		o["spec"] = specFields(spec)
		owner := map[string]any{kobj.LabelPackage: labelValue(spec.Package), kobj.LabelNamespace: in.Namespace}
		out = append(out, owned(t.opt.profile.AdornInstallation(o), owner, spec.Version))
	}
	return append(out, t.ownReporter(t.reporterRole(all)))
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
