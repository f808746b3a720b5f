package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render"
)

// Kubectl returns the kubectl command for an action, without a trailing line break. An object to
// apply follows in a here-document; if rendered is nil, the command reads it from standard
// input. For an action without a kubectl command it returns a comment.
func (p *Plan) Kubectl(a Action, rendered k8s.Object) string {
	v, _ := verbOf(a.Do)
	return v.kubectl(p, a, rendered)
}

// targetName returns the kubectl arguments that address an object.
func targetName(r k8s.Ref) string {
	kind := strings.ToLower(r.Kind)
	if group, version, ok := strings.Cut(r.APIVersion, "/"); ok {
		kind += "." + version + "." + group
	}
	out := kind + " " + quoteValue(r.Name)
	if r.Namespace != "" {
		out += " --namespace " + quoteValue(r.Namespace)
	}
	return out
}

// quoteValue quotes a word for shells.
func quoteValue(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:/=@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func kubectlMetadata(_ *Plan, a Action, _ k8s.Object) string {
	return kubectlPatch(a, "merge", a.MetadataPatch(a.UID))
}

func kubectlPatch(a Action, patchType string, patch any) string {
	text, err := json.Marshal(patch)
	if err != nil {
		panic("plan: patch is invalid JSON: " + err.Error())
	}
	return "kubectl patch " + targetName(a.Object) + " --type=" + patchType + " --patch " + quoteValue(string(text))
}

func kubectlApply(p *Plan, a Action, rendered k8s.Object) string {
	out := "kubectl apply --server-side --field-manager=" + quoteValue(p.Manager)
	if a.Force {
		out += " --force-conflicts"
	}
	out += " --filename -"
	if rendered == nil {
		return out
	}
	return out + " <<'END'\n" + string(yamlnode.Encode(a.Applied(rendered))) + "END"
}

func kubectlSave(_ *Plan, a Action, _ k8s.Object) string {
	out := "kubectl get " + targetName(a.Object) + " --show-managed-fields --output "
	if a.Object.Kind == "Secret" && a.Object.APIVersion == "v1" {
		out += "jsonpath='{.metadata}'"
	} else {
		out += "yaml"
	}
	return out + " >" + quoteValue(strings.ReplaceAll(strings.ReplaceAll(a.Object.String(), " ", "_"), "/", "_")+".yaml")
}

func kubectlDelete(_ *Plan, a Action, _ k8s.Object) string {
	return "kubectl delete " + targetName(a.Object) + " --ignore-not-found"
}

func kubectlOrphan(_ *Plan, a Action, _ k8s.Object) string {
	return "kubectl delete " + targetName(a.Object) + " --ignore-not-found --cascade=orphan"
}

func kubectlScale(_ *Plan, a Action, _ k8s.Object) string {
	return fmt.Sprintf("kubectl scale %s --current-replicas=%d --replicas=%d", targetName(a.Object), a.From, a.To)
}

func kubectlRestart(_ *Plan, a Action, _ k8s.Object) string {
	return "kubectl rollout restart " + targetName(a.Object)
}

func kubectlUnfinalize(_ *Plan, a Action, _ k8s.Object) string {
	patch := []any{
		map[string]any{"op": "test", "path": "/metadata/uid", "value": a.UID},
		map[string]any{"op": "test", "path": "/metadata/finalizers/0", "value": a.Finalizer},
		map[string]any{"op": "remove", "path": "/metadata/finalizers/0"},
	}
	for _, key := range a.Unset {
		patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + k8s.EscapePointer(key)})
	}
	return kubectlPatch(a, "json", patch)
}

func kubectlDisown(_ *Plan, a Action, _ k8s.Object) string {
	at := fmt.Sprintf("/metadata/ownerReferences/%d", a.Index)
	return kubectlPatch(a, "json", []any{
		map[string]any{"op": "test", "path": "/metadata/uid", "value": a.UID},
		map[string]any{"op": "test", "path": at + "/uid", "value": a.Owner},
		map[string]any{"op": "remove", "path": at},
	})
}

// noKubectl returns a comment for an action without a kubectl command.
func noKubectl(why string) func(*Plan, Action, k8s.Object) string {
	return func(_ *Plan, a Action, _ k8s.Object) string { return "# " + a.Object.String() + ": " + why }
}

// Script returns a plan as kubectl commands for manual execution, with the checks before and
// after each step and the manual steps. rendered contains the objects to apply.
func (p *Plan) Script(rendered []render.Rendered) string {
	tree := map[k8s.Key]k8s.Object{}
	for _, r := range rendered {
		tree[r.Object.Key()] = r.Object
	}
	var b strings.Builder
	b.WriteString("# Run the commands one at a time. Verify the conditions before and after each step.\n# kubectl deletes by name only: compare the UIDs first.\n")
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "\n# Step %d: %s\n", s.Number, sanitize.Line(s.Title))
		writeChecks(&b, "Before", s.Before)
		if s.Manual != "" {
			fmt.Fprintf(&b, "# By hand: %s\n", sanitize.Line(s.Manual))
		}
		for _, a := range s.Actions {
			b.WriteString(p.Kubectl(a, tree[a.Object.Key()]) + "\n")
		}
		writeChecks(&b, "After", s.After)
	}
	return b.String()
}

// writeChecks writes checks as comments.
func writeChecks(b *strings.Builder, when string, checks []Check) {
	for _, c := range checks {
		fmt.Fprintf(b, "# %s: %s", when, c.Check.Describe())
		for i, o := range c.Objects {
			b.WriteString([]string{": ", ", "}[min(i, 1)] + o.String())
		}
		b.WriteByte('\n')
	}
}

// Describe describes a fulfilled condition.
func (c Condition) Describe() string {
	return map[Condition]string{
		Succeeded:   "the ClusterServiceVersions are Succeeded",
		Installed:   "the ClusterExtensions are installed",
		NoPlan:      "no InstallPlan is in progress",
		IsStopped:   "OLM's controllers are stopped",
		IsReady:     "the Deployments' pods are ready",
		Deleted:     "the objects to delete are deleted",
		SameUID:     "every previous object exists, with its UID",
		NoOwner:     "no object is owned by a removed object of OLM",
		Conversion:  "custom resources are converted as before",
		Available:   "aggregated APIs are available",
		Permissions: "ServiceAccounts have their previous permissions, and no more",
		Prepared:    "the tree's roles grant all permissions of OLM's roles",
		NoRestart:   "no pods are replaced unless planned",
		SameVersion: "every object is as planned",
	}[c]
}
