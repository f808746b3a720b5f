package plan

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render"
)

// Kubectl returns the kubectl command for an action, without a trailing line break. The command contains the
// object to apply as a here-document or, if rendered is nil, reads it from standard input. If there is no
// kubectl command for the action, Kubectl returns a comment.
func (p *Plan) Kubectl(a Action, rendered k8s.Object) string {
	v := verbs()[a.Do]
	if v.kubectl != nil {
		return v.kubectl(p, a, rendered)
	}
	q, _ := v.request(Attempt{Action: a, Plan: p, Live: a.unchanged()})
	if q.Delete != nil {
		out := "kubectl delete " + targetName(a.Object) + " --ignore-not-found"
		if q.Delete.Orphan {
			out += " --cascade=orphan"
		}
		return out
	}
	patchType := "merge"
	if q.Patch.JSON != nil {
		patchType = "json"
	}
	_, text, err := q.Patch.Encode()
	if err != nil {
		panic("plan: patch is invalid JSON: " + err.Error())
	}
	return "kubectl patch " + targetName(a.Object) + " --type=" + patchType + " --patch " + quoteValue(string(text))
}

// unchanged returns the metadata that must not have changed since the plan was made.
func (a Action) unchanged() k8s.Object {
	annotations := map[string]any{}
	for _, key := range a.Unset {
		annotations[key] = ""
	}
	return k8s.Object{"metadata": map[string]any{"uid": a.UID, "finalizers": []any{a.Finalizer}, "annotations": annotations}}
}

// targetName returns the kubectl arguments that select an object.
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

// quoteValue quotes a word for the shell, if necessary.
func quoteValue(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:/=@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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

func kubectlScale(_ *Plan, a Action, _ k8s.Object) string {
	return fmt.Sprintf("kubectl scale %s --current-replicas=%d --replicas=%d", targetName(a.Object), a.From, a.To)
}

func kubectlRestart(_ *Plan, a Action, _ k8s.Object) string {
	return "kubectl rollout restart " + targetName(a.Object)
}

// noKubectl returns a function that returns a comment with the reason why there is no command.
func noKubectl(why string) func(*Plan, Action, k8s.Object) string {
	return func(_ *Plan, a Action, _ k8s.Object) string { return "# " + a.Object.String() + ": " + why }
}

// Script returns the plan as kubectl commands for execution by hand. It contains the manual steps, and the
// checks as comments. rendered contains the objects to apply.
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
