package render

import (
	"slices"
	"strconv"
	"strings"
)

// profiled returns o with what the GitOps tool wants on it.
func (o Options) profiled(obj Object) Object {
	switch o.Profile {
	case ArgoCD:
		return argoCD(obj)
	case Flux:
		return flux(obj)
	case Plain:
	}
	return obj
}

const (
	argoWave    = "argocd.argoproj.io/sync-wave"
	argoOptions = "argocd.argoproj.io/sync-options"
	fluxPrefix  = "kustomize.toolkit.fluxcd.io/"

	// largeObject is the size in bytes from which kubectl's annotation of the
	// last applied state, at most 256 KiB with all others, may not fit.
	largeObject = 200 << 10
)

// argoCD sets the sync wave and what a sync must mind.
func argoCD(o Object) Object {
	var options []string
	switch {
	case isCRD(o):
		if textSize(map[string]any(o)) > largeObject {
			options = append(options, "ServerSideApply=true")
		}
		options = append(options, confirmed()...)
	case o.Is("", "Namespace"):
		options = append(options, confirmed()...)
	case !builtinGroup(o.Group()):
		options = append(options, "SkipDryRunOnMissingResource=true")
	}
	o = annotate(o, map[string]string{argoWave: strconv.Itoa(wave(o))})
	have := str(sub(o, "metadata", "annotations"), argoOptions)
	merged := mergeOptions(have, options)
	if merged == "" {
		return o
	}
	return with(o, merged, "metadata", "annotations", argoOptions)
}

// confirmed returns the options of what holds data. It goes last: while Argo CD
// waits for a person, it does nothing that belongs to the same sync wave or to a
// later one, such as the upgrade of another operator's CRD.
func confirmed() []string { return []string{"Prune=confirm", "PruneLast=true", "Delete=confirm"} }

// mergeOptions adds those of more whose name is not among the comma-separated
// options yet.
func mergeOptions(have string, more []string) string {
	var out, names []string
	for _, option := range append(strings.Split(have, ","), more...) {
		option = strings.TrimSpace(option)
		name, _, _ := strings.Cut(option, "=")
		if option != "" && !slices.Contains(names, name) {
			out, names = append(out, option), append(names, name)
		}
	}
	return strings.Join(out, ",")
}

// wave returns the sync wave of an object, by its place in phases.
func wave(o Object) int {
	switch {
	case o.Is("", "Namespace"):
		return -40
	case isCRD(o):
		return -30
	case o.Is("cert-manager.io", "Issuer"), o.Is("cert-manager.io", "Certificate"):
		return -15
	}
	switch p := phase(o); {
	case slices.Contains([]string{"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}, o.Kind()) && builtinGroup(o.Group()):
		return -20
	case p < workloadPhase:
		return -10
	case p == workloadPhase:
		return 0
	case p < len(phases()):
		return 10
	default:
		return 20
	}
}

// flux guards what must not be pruned or substituted, and lets others write
// the CA that they inject.
func flux(o Object) Object {
	more := map[string]string{}
	if isCRD(o) || o.Is("", "Namespace") {
		more[fluxPrefix+"prune"] = "disabled"
	}
	if holdsText(map[string]any(o), "${") {
		more[fluxPrefix+"substitute"] = "disabled"
	}
	if injected(o) {
		more[fluxPrefix+"ssa"] = "Merge"
	}
	return annotate(o, more)
}

// injected reports whether a controller fills in a CA.
func injected(o Object) bool {
	annotations := sub(o, "metadata", "annotations")
	for _, key := range []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "service.beta.openshift.io/inject-cabundle"} {
		if annotations[key] != nil {
			return true
		}
	}
	return false
}

// textSize returns about as many bytes as v has in JSON.
func textSize(v any) int {
	size := 2
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			size += len(key) + 4 + textSize(e)
		}
	case []any:
		for _, e := range v {
			size += 1 + textSize(e)
		}
	case string:
		size += len(v)
	default:
		size += 4
	}
	return size
}

// holdsText reports whether a string or key within v contains text.
func holdsText(v any, text string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if strings.Contains(key, text) || holdsText(e, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holdsText(e, text) })
	case string:
		return strings.Contains(v, text)
	}
	return false
}
