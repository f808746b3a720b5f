package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// releaseObjects returns the objects of a complete bundle, without CRDs. Namespaced objects without
// a namespace get the install namespace.
func releaseObjects(in *install) ([]Object, error) {
	var errs diag.List
	var out []Object
	for _, file := range in.b.Objects {
		o, err := in.convertToServed(file, file.Object)
		errs.Add(file.Pos(), err)
		if err != nil {
			continue
		}
		warnServicesOutside(in, file, o)
		if k8s.IsCRD(o) {
			continue
		}
		o = plainMetadata(o)
		if o, err = in.checkTypes(file.Pos(), o); err != nil {
			errs.Add(file.Pos(), err)
			continue
		}
		switch namespaced := in.scopes.namespaced(o.Group(), o.Kind()); {
		case !namespaced:
			o = k8s.Without(o, "metadata", "namespace")
		case o.Namespace() == "":
			o = k8s.With(o, in.pin.Namespace, "metadata", "namespace")
		}
		if o.Is("", "ServiceAccount") {
			o = withPullSecrets(o, in.opt.ImagePullSecrets)
		}
		if o.Is("apps", "Deployment") {
			o = k8s.Copy(o)
			in.config.applyInPlace(o)
			addProxy(podOf(k8s.Ensure(o, "spec")), in.opt.Proxy, in.config)
			errs.Add(in.pin.Pos, in.config.checkMounts(in.pin.Pos, o))
		}
		if file.Hook == nil || keepsHook(in, file) {
			out = append(out, in.distinct(file.Pos(), o))
		}
	}
	return out, errs.Err()
}

// warnServicesOutside adds a warning for each Service that an object of a complete bundle calls, and that is not in
// the bundle.
func warnServicesOutside(in *install, file bundle.ManifestObject, o Object) {
	configs := k8s.ClientConfigs(o)
	if len(configs) == 0 {
		return
	}
	seen := map[k8s.Key]bool{}
	for _, f := range in.b.Objects {
		if f.Is("", "Service") {
			seen[k8s.Key{Namespace: cmp.Or(f.Namespace(), in.pin.Namespace), Name: f.Name()}] = true
		}
	}
	for _, c := range configs {
		key := k8s.Key{Namespace: k8s.Text(c, "service", "namespace"), Name: k8s.Text(c, "service", "name")}
		if key.Name != "" && !seen[key] {
			seen[key] = true
			in.warnOutside(file, "Service", key.Name, key.Namespace)
		}
	}
}

// hookOf returns the times at which a GitOps tool applies a hook of Helm, and the hook's events that no tool
// supports. The hook is nil if the object, such as a test, has no place in a rendered tree. Otherwise, rollback
// events are omitted: the hook runs anyway when a commit rolls an upgrade back.
func hookOf(h bundle.Hook) (hook *profile.Hook, others []string) {
	out := profile.Hook{Weight: h.Weight, Succeeded: slices.Contains(h.Delete, "hook-succeeded"), Failed: slices.Contains(h.Delete, "hook-failed")}
	for _, event := range h.Events {
		switch event {
		case "pre-install", "pre-upgrade":
			out.Before = true
		case "post-install", "post-upgrade":
			out.After = true
		case "test", "test-success":
		default:
			others = append(others, event)
		}
	}
	if !out.Before && !out.After {
		return nil, others
	}
	return &out, slices.DeleteFunc(others, func(event string) bool { return strings.HasSuffix(event, "-rollback") })
}

// keepsHook reports whether a hook is rendered, and warns if the GitOps tool does not run the hook as Helm
// does.
func keepsHook(in *install, file bundle.ManifestObject) bool {
	about := in.opt.profile.About()
	tool := cmp.Or(about.Tool, "kubectl")
	hook, others := hookOf(*file.Hook)
	if len(others) > 0 {
		in.warn(file.Pos(), "hook-dropped", "%s is not applied at %s: %s has no such hook", file, strings.Join(others, ", "), tool)
	}
	if hook != nil && !about.RunsHooks {
		in.warn(file.Pos(), "hook-order", "%s is a Helm hook (%s), but %s applies it together with the other objects", file, strings.Join(file.Hook.Events, ", "), tool)
	}
	return hook != nil
}

// markHooksAndKept records in positions which objects are hooks, and which objects remain without their operator.
func markHooksAndKept(positions map[Key]profile.ApplyPosition, installs []operator) {
	for _, in := range installs {
		for _, file := range in.b.Objects {
			if file.Hook == nil && !file.Kept {
				continue
			}
			key := file.Key()
			for _, o := range slices.Concat(in.objects, in.sharedObjects) {
				if is := o.Key(); is == key || key.Namespace == "" && is == (Key{Group: key.Group, Kind: key.Kind, Namespace: in.pin.Namespace, Name: key.Name}) {
					position := positions[is]
					position.Kept = file.Kept
					if file.Hook != nil {
						position.Hook, _ = hookOf(*file.Hook)
					}
					positions[is] = position
				}
			}
		}
	}
}
