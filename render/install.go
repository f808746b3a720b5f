package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile/certificates"
	"github.com/quayside/quayside/lockfile"
)

// install is a bundle with its pin: the input of every generator.
type install struct {
	pin        lockfile.Pin
	b          *bundle.Bundle
	opt        Options
	watchesAll bool     // whether it watches all namespaces
	watch      []string // watched namespaces, sorted; nil if watchesAll is set
	scopes     scopes
	config     config
	services   map[string]string // Service of the webhooks and APIServices of each Deployment
	warnings   []diag.Warning
}

// generator generates the objects of one kind or purpose.
type generator func(*install) ([]Object, error)

// objectGenerators returns the generators for the objects of a bundle. Shipped objects come last,
// because they override generated objects of the same kind and name.
func objectGenerators(b *bundle.Bundle) []generator {
	if b.Complete {
		return []generator{customResourceDefinitions, releaseObjects, storageMigrations}
	}
	return []generator{
		serviceAccounts, renderRoles, customResourceDefinitions, renderDeployments,
		webhookServices, servingCertificates, webhookConfigurations,
		apiServices, authDelegation, operatorConditions, providedAPIRoles, operatorGroupRoles, storageMigrations, shippedObjects,
	}
}

// Manifests returns the objects that a pin installs from a bundle, without the install Namespace,
// sorted by kind, group, namespace and name. The bundle must be valid; see [bundle.Validate].
// Manifests does not modify its arguments. The objects can share values with b.
func Manifests(b *bundle.Bundle, pin lockfile.Pin, opt Options) ([]Object, []diag.Warning, error) {
	opt, err := opt.defaults()
	if err != nil {
		return nil, nil, err
	}
	in, err := newInstall(b, pin, opt)
	if err != nil {
		return nil, nil, err
	}
	var errs diag.List
	var objects []Object
	for _, generate := range objectGenerators(b) {
		got, err := generate(in)
		errs.Add(diag.Pos{}, err)
		objects = append(objects, got...)
	}
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	objects = mergeDuplicates(objects)
	for i, o := range objects {
		objects[i] = in.addOwner(in.canonical(in.withoutForeignFields(in.withoutInjectedCA(plainMetadata(o)))))
		in.checkNames(objects[i], &errs)
		checkBuildable(objectPos(in.b, objects[i]), objects[i], &errs)
		in.checkReserved(objects[i], &errs)
	}
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Key().Compare(b.Key()) })
	return objects, in.warnings, nil
}

// withoutInjectedCA returns an object without its CA if a controller in the cluster injects a CA: the GitOps
// engine and the controller would overwrite each other's value. If no controller injects a CA, it removes only
// a CA that is a placeholder.
func (in *install) withoutInjectedCA(o Object) Object {
	if certificates.IsInjected(o, in.opt.Certificates, in.opt.OpenShift) {
		return certificates.WithoutCA(o)
	}
	return certificates.WithoutEmptyCA(o)
}

func newInstall(b *bundle.Bundle, pin lockfile.Pin, opt Options) (*install, error) {
	in := &install{pin: pin, b: b, opt: opt, scopes: newScopes(b.Objects), services: map[string]string{}}
	in.watchesAll = allNamespaces(pin.InstallMode, pin.WatchNamespaces)
	if !in.watchesAll {
		in.watch = slices.Compact(slices.Sorted(slices.Values(pin.WatchNamespaces)))
	}
	var err error
	if in.config, err = parseConfig(pin.Config); err != nil {
		return nil, diag.Errorf(pin.Pos, "%w", err)
	}
	if err := in.keepCertificates(); err != nil {
		return nil, err
	}
	return in, in.nameServices()
}

// nameServices sets the names of the Services of Deployments that serve webhooks or APIs. It
// returns an error if two Deployments would get the same name.
func (in *install) nameServices() error {
	deploymentOf := map[string]string{}
	name := func(deployment string) error {
		service := serviceName(deployment)
		if other, ok := deploymentOf[service]; ok && other != deployment {
			return diag.Errorf(in.csvPos(), "deployments %q and %q would share the Service %q", other, deployment, service)
		}
		deploymentOf[service], in.services[deployment] = deployment, service
		return nil
	}
	var errs diag.List
	for _, w := range in.b.CSV.Webhooks {
		errs.Add(diag.Pos{}, name(w.DeploymentName))
	}
	for _, a := range in.b.CSV.OwnedAPIs {
		errs.Add(diag.Pos{}, name(a.DeploymentName))
	}
	return errs.Err()
}

// namespaces returns the install namespace, and then the other watched namespaces, sorted.
func (in *install) namespaces() []string {
	out := []string{in.pin.Namespace}
	for _, ns := range in.watch {
		if ns != in.pin.Namespace {
			out = append(out, ns)
		}
	}
	return out
}

func (in *install) csvPos() diag.Pos { return diag.Pos{File: in.b.CSV.File} }

func (in *install) warn(pos diag.Pos, code, format string, args ...any) {
	in.warnings = append(in.warnings, diag.Warning{Pos: pos, Code: code, Msg: fmt.Sprintf(format, args...)})
}

// warnMinor adds a warning about a fault that users of the bundle need not fix.
func (in *install) warnMinor(pos diag.Pos, code, format string, args ...any) {
	in.warnings = append(in.warnings, diag.Warning{Pos: pos, Code: code, Minor: true, Msg: fmt.Sprintf(format, args...)})
}

// jsonText returns v as JSON with sorted keys.
func jsonText(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// mergeDuplicates merges objects with the same key, at the position of the first. The fields of a later object
// override the fields of an earlier object. A Service gets the ports of both objects, but only the selector of
// the later object.
func mergeDuplicates(objects []Object) []Object {
	at := map[Key]int{}
	var out []Object
	for _, o := range objects {
		if i, ok := at[o.Key()]; ok {
			out[i] = mergeObject(out[i], o)
			continue
		}
		at[o.Key()] = len(out)
		out = append(out, o)
	}
	return out
}

func mergeObject(under, over Object) Object {
	merged := Object(k8s.Merge(under, over))
	if merged.Is("", "Service") {
		ports := unionPorts(k8s.Items(over, "spec", "ports"), k8s.Items(under, "spec", "ports"))
		merged = k8s.With(merged, ports, "spec", "ports")
		if selector := k8s.Map(over, "spec", "selector"); selector != nil {
			merged = k8s.With(merged, any(selector), "spec", "selector")
		}
	}
	return merged
}

// unionPorts returns the ports of first, and the ports of second with another number or protocol. If the
// result has more than one port, each port gets a name.
func unionPorts(first, second []map[string]any) []any {
	seen := map[string]bool{}
	var out []any
	both := slices.Concat(first, second)
	for _, p := range both {
		key := fmt.Sprint(p["port"], "-", strings.ToLower(cmp.Or(k8s.Text(p, "protocol"), "TCP")))
		if seen[key] {
			continue
		}
		seen[key] = true
		if k8s.Text(p, "name") == "" {
			p = k8s.With(p, any(key), "name")
		}
		out = append(out, p)
	}
	if len(out) == 1 {
		return []any{both[0]}
	}
	return out
}

// dashName replaces the dots in a name with dashes.
func dashName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// localName returns the name of a generated object in the install namespace, such as
// "etcd.etcd-operator".
func (in *install) localName(of string) string {
	return k8s.Fit(in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// globalName returns the name of a generated object outside of the install namespace, such as
// "my-etcd.etcd.etcd-operator". It starts with the install namespace, so that the names differ if
// the package is installed twice.
func (in *install) globalName(of string) string {
	return k8s.Fit(in.pin.Namespace+"."+in.pin.Package+"."+of, k8s.MaxSubdomain)
}

// nameIn returns the localName of a generated object in the install namespace, and the globalName in any other.
func (in *install) nameIn(namespace, of string) string {
	if namespace == in.pin.Namespace {
		return in.localName(of)
	}
	return in.globalName(of)
}

// serviceName returns the name of the generated Service of a Deployment.
func serviceName(deployment string) string {
	const suffix = "service"
	base := dashName(deployment)
	return k8s.Suffixed(base[:min(len(base), k8s.MaxLabel-len(suffix)-1)], suffix)
}

// scopes contains the scope of the kinds that a bundle's CRDs define, by group and kind: true if
// namespaced.
type scopes map[[2]string]bool

func newScopes(objects []bundle.ManifestObject) scopes {
	s := scopes{}
	for _, o := range objects {
		if k8s.IsCRD(o.Object) {
			crd := k8s.ParseCRD(o.Object)
			s[[2]string{crd.Group, crd.Kind}] = crd.Namespaced
		}
	}
	return s
}

// namespaced reports whether objects of a kind have a namespace.
func (s scopes) namespaced(group, kind string) bool {
	if namespaced, ok := s[[2]string{group, kind}]; ok {
		return namespaced
	}
	return k8s.Namespaced(group, kind)
}
