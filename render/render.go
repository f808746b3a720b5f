// Package render turns bundles and the pins of a lock into plain Kubernetes
// manifests, in trees that stock kustomize builds.
//
// It is a pure function of the lock, the options and the bundles' content: it
// reads no file and no clock, knows nothing of subscriptions, and the same
// input gives the same bytes. What a bundle becomes is the list in generators.
//
// A tree looks like this; each directory with a kustomization builds by itself:
//
//	kustomization.yaml                    everything, for kubectl apply -k
//	crds/<package>/                       CRDs once a cluster, without a kustomization
//	namespaces/                           the install namespaces
//	operators/<namespace>/<package>/      the base, one object a file
//	clusters/<name>/kustomization.yaml    the user's: written once, then left alone
//	clusters/<name>/generated/            the base with what differs in that cluster
//	reporter/                             where it is asked for, the reporter and an Installation a pin
//	clusters/<name>/reporter/             that cluster's reporter, likewise over generated
//	argocd/ or flux/                      what makes the GitOps tool apply the tree
//
// A user's patches lie beside clusters/<name>/kustomization.yaml, which builds
// on generated; rendering again changes only generated. With several clusters
// clusters/ itself has no kustomization, since they hold the same objects.
//
// Start from [All], [Manifests] and [Stream].
package render

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
)

// Result is everything that a lock renders to.
type Result struct {
	Tree     *filetree.Tree
	Objects  []Rendered     // those of the tree's base, in the order of Path
	Warnings []diag.Warning // sorted

	tree *tree // for Installations
}

// Rendered is one object of the tree's base.
type Rendered struct {
	Object    Object
	Path      string // "operators/my-etcd/etcd/deployment-etcd-operator.yaml"
	Namespace string // install namespace; empty for CRDs
	Package   string // empty for a Namespace that several operators share
}

// opened is a pin with its bundle and what it renders to.
type opened struct {
	pin     lockfile.Pin
	b       *bundle.Bundle
	objects []Object // without CRDs
	crds    []Object
	others  []Object // that the bundle has too, but an install before it renders
}

// name returns "namespace/package".
func (o opened) name() string { return o.pin.Namespace + "/" + o.pin.Package }

// placed returns warnings whose file is named with the bundle that it lies in.
func (o opened) placed(warnings []diag.Warning) []diag.Warning {
	out := slices.Clone(warnings)
	for i := range out {
		if out[i].Pos.File != "" {
			out[i].Pos.File = path.Join(o.b.CSV.Name, out[i].Pos.File)
		}
	}
	return out
}

// All renders every pin of the lock. open returns the content of a pin's
// bundle; all bundles that cannot be opened are reported at once, and so are
// all faults of all bundles. No argument is changed.
func All(lock *lockfile.File, opt Options, open func(lockfile.Pin) (fs.FS, error)) (*Result, error) {
	opt = opt.defaults()
	installs, err := openAll(lock, open)
	if err != nil {
		return nil, err
	}
	var errs []error
	var warnings []diag.Warning
	for i := range installs {
		in := &installs[i]
		known, err := bundle.Validate(in.b)
		if err != nil {
			errs = append(errs, fmt.Errorf("bundle %q of %s is not valid:\n%w", in.pin.Bundle, in.name(), err))
			continue
		}
		objects, more, err := Manifests(in.b, in.pin, opt)
		if err != nil {
			errs = append(errs, fmt.Errorf("rendering %s (%s):\n%w", in.name(), in.pin.Bundle, err))
			continue
		}
		warnings = append(warnings, in.placed(slices.Concat(known, more))...)
		for _, o := range objects {
			if isCRD(o) {
				in.crds = append(in.crds, o)
			} else {
				in.objects = append(in.objects, o)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t := &tree{opt: opt, installs: installs, files: filetree.New()}
	t.warnings = warnings
	if err := t.build(); err != nil {
		return nil, err
	}
	slices.SortFunc(t.objects, func(a, b Rendered) int { return strings.Compare(a.Path, b.Path) })
	return &Result{Tree: t.files, Objects: t.objects, Warnings: diag.SortWarnings(t.warnings), tree: t}, nil
}

// openAll loads every bundle, in the order of namespace and package.
func openAll(lock *lockfile.File, open func(lockfile.Pin) (fs.FS, error)) ([]opened, error) {
	var missing, broken []error
	var out []opened
	pins := slices.SortedFunc(slices.Values(lock.Pins), func(a, b lockfile.Pin) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Package, b.Package))
	})
	for _, pin := range pins {
		name := pin.Namespace + "/" + pin.Package
		fsys, err := open(pin)
		if err != nil {
			missing = append(missing, fmt.Errorf("opening bundle %q of %s: %w", pin.Bundle, name, err))
			continue
		}
		b, err := bundle.Load(fsys)
		if err != nil {
			broken = append(broken, fmt.Errorf("reading bundle %q of %s:\n%w", pin.Bundle, name, err))
			continue
		}
		if b.CSV.Name != pin.Bundle && pin.Bundle != "" {
			broken = append(broken, fmt.Errorf("reading bundle %q of %s: it holds %q", pin.Bundle, name, b.CSV.Name))
			continue
		}
		out = append(out, opened{pin: pin, b: b})
	}
	return out, errors.Join(append(missing, broken...)...)
}

// Stream returns the base's objects as one multi-document YAML, in the order
// in which a cluster can take them.
func Stream(r *Result) []byte {
	objects := make([]Object, len(r.Objects))
	for i, o := range r.Objects {
		objects[i] = o.Object
	}
	return Documents(objects)
}

// Documents returns objects as one multi-document YAML in apply order, then
// by group, kind, namespace and name.
func Documents(objects []Object) []byte {
	sorted := slices.SortedStableFunc(slices.Values(objects), func(a, b Object) int {
		return cmp.Or(cmp.Compare(phase(a), phase(b)), strings.Compare(a.Group(), b.Group()),
			strings.Compare(a.Kind(), b.Kind()), strings.Compare(a.Namespace(), b.Namespace()), strings.Compare(a.Name(), b.Name()))
	})
	var out bytes.Buffer
	for _, o := range sorted {
		out.WriteString("---\n")
		out.Write(Encode(map[string]any(o)))
	}
	return out.Bytes()
}

// phases lists what can be applied together, in order; each line needs those
// above. What no line names belongs to "workloads", custom resources to the
// end.
func phases() [][]string {
	return [][]string{
		{"Namespace"},
		{"NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "ResourceQuota", "LimitRange"},
		{"ServiceAccount"},
		{"Secret", "ConfigMap"},
		{"PersistentVolume", "PersistentVolumeClaim", "StorageClass"},
		{"CustomResourceDefinition"},
		{"ClusterRole", "Role"},
		{"ClusterRoleBinding", "RoleBinding"},
		{"Service", "Issuer", "Certificate", "OperatorCondition"},
		{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"},
		{"VerticalPodAutoscaler", "HorizontalPodAutoscaler"},
		{"PrometheusRule", "ServiceMonitor", "PodMonitor", "ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin"},
		{"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
	}
}

const workloadPhase = 9

// phase returns the place of o in the order of application.
func phase(o Object) int {
	for i, kinds := range phases() {
		if slices.Contains(kinds, o.Kind()) && knownGroup(o.Group()) {
			return i
		}
	}
	if builtinGroup(o.Group()) {
		return workloadPhase
	}
	return len(phases())
}

// builtinGroup reports whether the API server itself serves the group.
func builtinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "networking.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "resource.k8s.io",
	}, group)
}

// knownGroup leaves out groups in which a kind of a familiar name means
// something else.
func knownGroup(group string) bool {
	return builtinGroup(group) || slices.Contains([]string{
		"cert-manager.io", "monitoring.coreos.com", "console.openshift.io", "operators.coreos.com", "autoscaling.k8s.io",
	}, group)
}
