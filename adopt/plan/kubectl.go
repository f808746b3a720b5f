package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render"
)

// Kubectl returns the command of kubectl that does what an action does, on one
// line or with the object that it applies, and without a line break at its end. What
// kubectl has no command for is a comment that says so. rendered is the object that
// is applied; where it is nil, it is to be given on standard input.
func (p *Plan) Kubectl(a Action, rendered kobj.Object) string {
	v, _ := verbOf(a.Do)
	return v.kubectl(p, a, rendered)
}

// target returns how kubectl is told of an object.
func target(r kobj.Ref) string {
	kind := strings.ToLower(r.Kind)
	if group, version, ok := strings.Cut(r.APIVersion, "/"); ok {
		kind += "." + version + "." + group
	}
	out := kind + " " + quoted(r.Name)
	if r.Namespace != "" {
		out += " --namespace " + quoted(r.Namespace)
	}
	return out
}

// quoted returns a word as shells read it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:/=@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func kubectlMeta(a Action, field string, set map[string]string) string {
	values := map[string]any{}
	for key, value := range set {
		values[key] = value
	}
	for _, key := range a.Unset {
		values[key] = nil
	}
	return kubectlPatch(a, "merge", map[string]any{"metadata": map[string]any{"uid": a.UID, field: values}})
}

func kubectlPatch(a Action, sort string, patch any) string {
	text, err := json.Marshal(patch)
	if err != nil {
		panic("plan: a patch of strings is no JSON: " + err.Error())
	}
	return "kubectl patch " + target(a.Object) + " --type=" + sort + " --patch " + quoted(string(text))
}

func kubectlAnnotate(_ *Plan, a Action, _ kobj.Object) string {
	return kubectlMeta(a, "annotations", a.Set)
}

func kubectlUnlabel(_ *Plan, a Action, _ kobj.Object) string { return kubectlMeta(a, "labels", nil) }

func kubectlApply(p *Plan, a Action, rendered kobj.Object) string {
	out := "kubectl apply --server-side --field-manager=" + quoted(p.Manager)
	if a.Force {
		out += " --force-conflicts"
	}
	out += " --filename -"
	if rendered == nil {
		return out
	}
	return out + " <<'END'\n" + string(yamlnode.Encode(a.Applied(rendered))) + "END"
}

func kubectlKeep(_ *Plan, a Action, _ kobj.Object) string {
	out := "kubectl get " + target(a.Object) + " --show-managed-fields --output "
	if a.Object.Kind == "Secret" && a.Object.APIVersion == "v1" {
		out += "jsonpath='{.metadata}'"
	} else {
		out += "yaml"
	}
	return out + " >" + quoted(strings.ReplaceAll(strings.ReplaceAll(a.Object.String(), " ", "_"), "/", "_")+".yaml")
}

func kubectlDelete(_ *Plan, a Action, _ kobj.Object) string {
	return "kubectl delete " + target(a.Object) + " --ignore-not-found"
}

func kubectlOrphan(_ *Plan, a Action, _ kobj.Object) string {
	return "kubectl delete " + target(a.Object) + " --ignore-not-found --cascade=orphan"
}

func kubectlScale(_ *Plan, a Action, _ kobj.Object) string {
	return fmt.Sprintf("kubectl scale %s --current-replicas=%d --replicas=%d", target(a.Object), a.From, a.To)
}

func kubectlUnfinalize(_ *Plan, a Action, _ kobj.Object) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	patch := []any{
		map[string]any{"op": "test", "path": "/metadata/uid", "value": a.UID},
		map[string]any{"op": "test", "path": "/metadata/finalizers/0", "value": a.Finalizer},
		map[string]any{"op": "remove", "path": "/metadata/finalizers/0"},
	}
	for _, key := range a.Unset {
		patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + escape.Replace(key)})
	}
	return kubectlPatch(a, "json", patch)
}

// noKubectl returns what says that a person is better off without kubectl.
func noKubectl(why string) func(*Plan, Action, kobj.Object) string {
	return func(_ *Plan, a Action, _ kobj.Object) string { return "# " + a.Object.String() + ": " + why }
}

// Script returns a plan as commands of kubectl, with what is checked before and
// after each step and what a person has to do, for somebody who follows it by
// hand. rendered is what is applied.
func (p *Plan) Script(rendered []render.Rendered) string {
	tree := map[kobj.Key]kobj.Object{}
	for _, r := range rendered {
		tree[r.Object.Key()] = r.Object
	}
	var b strings.Builder
	b.WriteString("# One command after the other, by hand: see before and after each step that what is said there holds.\n# kubectl deletes by name alone: look at UIDs yourself.\n")
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "\n# Step %d: %s\n", s.Number, inert.Line(s.Title))
		tell(&b, "Before", s.Before)
		if s.Manual != "" {
			fmt.Fprintf(&b, "# By hand: %s\n", inert.Line(s.Manual))
		}
		for _, a := range s.Actions {
			b.WriteString(p.Kubectl(a, tree[a.Object.Key()]) + "\n")
		}
		tell(&b, "After", s.After)
	}
	return b.String()
}

// tell writes checks as comments.
func tell(b *strings.Builder, when string, checks []Check) {
	for _, c := range checks {
		fmt.Fprintf(b, "# %s: %s", when, c.Check.Words())
		for i, o := range c.Objects {
			b.WriteString([]string{": ", ", "}[min(i, 1)] + o.String())
		}
		b.WriteByte('\n')
	}
}

// Words returns what a condition asks, for a person.
func (c Condition) Words() string {
	return map[Condition]string{
		Succeeded:   "each ClusterServiceVersion is Succeeded",
		NoPlan:      "no InstallPlan of the namespace is in flight",
		IsStopped:   "no replica is left",
		IsReady:     "all replicas are ready",
		Gone:        "gone",
		SameUID:     "every object that stays is there, with its UID",
		NoOwner:     "no object has an ownerReference to a ClusterServiceVersion",
		Conversion:  "each CustomResourceDefinition converts as before",
		Available:   "each APIService is available that was before",
		Rights:      "each ServiceAccount may what it might before",
		Prepared:    "each ServiceAccount may it by the tree's own roles alone",
		NoRestart:   "no pod restarted that the plan does not name",
		SameVersion: "nobody changed an object since the plan was made",
	}[c]
}
