package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/certificates"
)

// install is one bundle as one pin installs it: what every generator works on.
type install struct {
	pin      lockfile.Pin
	b        *bundle.Bundle
	opt      Options
	all      bool     // watches every namespace
	watch    []string // sorted; nil where all
	scopes   scopes
	config   config
	services map[string]string // deployment → name of the Service in front of its webhooks and API services
	warnings []diag.Warning
}

// generator makes one sort of object.
type generator func(*install) ([]Object, error)

// generators lists what a bundle becomes. What is shipped comes last: it is
// merged over what is generated of the same kind and name.
func generators() []generator {
	return []generator{
		serviceAccounts, roles, customResourceDefinitions, deployments,
		webhookServices, servingCertificates, webhookConfigurations,
		apiServices, delegation, operatorConditions, providedAPIRoles, operatorGroupRoles, storageMigrations, shipped,
	}
}

// Manifests returns the objects that pin installs of b, which [bundle.Validate]
// takes, without the install Namespace, by kind, group, namespace and name.
// Neither argument is changed; the objects may share values with b.
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
	for _, generate := range generators() {
		got, err := generate(in)
		errs.Add(diag.Pos{}, err)
		objects = append(objects, got...)
	}
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	objects = mergeSame(objects)
	for i, o := range objects {
		objects[i] = in.own(withoutUnset(in.withoutInjectedCA(plainMetadata(o))))
		in.legal(objects[i], &errs)
		in.free(objects[i], &errs)
	}
	if err := errs.Err(); err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Key().Compare(b.Key()) })
	return objects, in.warnings, nil
}

// withoutInjectedCA returns an object without a CA where a controller of the cluster fills
// one in: the engine and the controller would overwrite each other's in turn. OpenShift's
// controller is not on other clusters.
func (in *install) withoutInjectedCA(o Object) Object {
	by := certificates.Injector(o)
	elsewhere := by == certificates.OpenShiftServiceCA && !in.opt.OpenShift && in.opt.Certificates != by
	if by == "" || elsewhere {
		return o
	}
	return certificates.WithoutCA(o)
}

func newInstall(b *bundle.Bundle, pin lockfile.Pin, opt Options) (*install, error) {
	in := &install{pin: pin, b: b, opt: opt, scopes: newScopes(b.Objects), services: map[string]string{}}
	in.all = allNamespaces(pin.InstallMode, pin.WatchNamespaces)
	if !in.all {
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

// nameServices gives each deployment that serves webhooks or APIs its Service.
func (in *install) nameServices() error {
	behind := map[string]string{}
	name := func(deployment string) error {
		service := serviceName(deployment)
		if other, ok := behind[service]; ok && other != deployment {
			return diag.Errorf(in.csvPos(), "deployments %q and %q would both have the Service %q", other, deployment, service)
		}
		behind[service], in.services[deployment] = deployment, service
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

// namespaces returns every namespace that the operator works in, its own
// first, the others sorted.
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

// jsonText returns v as JSON with sorted keys.
func jsonText(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// mergeSame makes one object of those with the same key, in the place of the
// first: the later one's fields win. A Service gets the ports of both, and the
// later one's selector as it is.
func mergeSame(objects []Object) []Object {
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
	merged := Object(mergeMaps(under, over))
	if merged.Is("", "Service") {
		ports := unionPorts(kobj.Items(over, "spec", "ports"), kobj.Items(under, "spec", "ports"))
		merged = kobj.With(merged, ports, "spec", "ports")
		if selector := kobj.Map(over, "spec", "selector"); selector != nil {
			merged = kobj.With(merged, any(selector), "spec", "selector")
		}
	}
	return merged
}

// mergeMaps returns under with the fields of over on top, objects merged
// field by field.
func mergeMaps(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for k, v := range over {
		a, aOK := out[k].(map[string]any)
		b, bOK := v.(map[string]any)
		if aOK && bOK {
			v = mergeMaps(a, b)
		}
		out[k] = v
	}
	return out
}

// unionPorts returns first's ports, then those of second that name no port
// number and protocol of first's. Of several, each has a name.
func unionPorts(first, second []map[string]any) []any {
	seen := map[string]bool{}
	var out []any
	both := slices.Concat(first, second)
	for _, p := range both {
		key := fmt.Sprint(p["port"], "-", strings.ToLower(cmp.Or(kobj.Text(p, "protocol"), "TCP")))
		if seen[key] {
			continue
		}
		seen[key] = true
		if kobj.Text(p, "name") == "" {
			p = kobj.With(p, any(key), "name")
		}
		out = append(out, p)
	}
	if len(out) == 1 {
		return []any{both[0]}
	}
	return out
}

// dashed returns a name in which dots are dashes.
func dashed(name string) string { return strings.ReplaceAll(name, ".", "-") }
