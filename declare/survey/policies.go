package survey

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Policy is a Policy of Open Cluster Management. It makes clusters create the objects that it contains.
type Policy struct {
	By         string // such as `Policy "etcd"`
	Pos        diag.Pos
	Placements []string // objects that select its clusters, such as `Placement "prod"`, sorted; which clusters they select is only known on the hub

	namespace, name string
	enforced        bool // whether the policy is not disabled, and has the remediation action enforce
}

// String returns the policy and the objects that select its clusters, for messages.
func (p *Policy) String() string {
	if len(p.Placements) == 0 {
		return fmt.Sprintf("%s (%s)", p.By, p.Pos)
	}
	return fmt.Sprintf("%s (%s) for the clusters of %s", p.By, p.Pos, strings.Join(p.Placements, ", "))
}

// binding binds a policy or a set of policies to the clusters of a placement.
type binding struct {
	kind, namespace, name string // of the policy or the set
	placement             string
}

// scanBinding records the bindings in a PlacementBinding, or the policies in a PolicySet. It reports
// whether n is one of these.
func (s *scanner) scanBinding(n *yamlnode.Node) bool {
	if groupOf(n) != policyGroup {
		return false
	}
	namespace := textAt(n, "metadata.namespace")
	switch textAt(n, "kind") {
	case "PlacementBinding":
		placement := fmt.Sprintf("%s %q", textAt(n, "placementRef.kind"), textAt(n, "placementRef.name"))
		for _, subject := range yamlnode.NodesAt(n, "subjects.[]") {
			s.bindings = append(s.bindings, binding{textAt(subject, "kind"), namespace, textAt(subject, "name"), placement})
		}
	case "PolicySet":
		for _, v := range yamlnode.NodesAt(n, "spec.policies.[]") {
			policy, _ := yamlnode.Text(v)
			s.sets = append(s.sets, binding{textAt(n, "metadata.name"), namespace, policy, ""})
		}
	default:
		return false
	}
	return true
}

// bindPolicies sets the placements of the policies that contain declarations.
func (s *scanner) bindPolicies() {
	for _, p := range s.holders {
		p.Placements = append(p.Placements, s.placementsOf("Policy", p.namespace, p.name)...)
		for _, set := range s.sets {
			if set.name == p.name && isSameNamespace(set.namespace, p.namespace) {
				p.Placements = append(p.Placements, s.placementsOf("PolicySet", set.namespace, set.kind)...)
			}
		}
		slices.Sort(p.Placements)
		p.Placements = slices.Compact(p.Placements)
	}
}

func (s *scanner) placementsOf(kind, namespace, name string) []string {
	var out []string
	for _, b := range s.bindings {
		if b.kind == kind && b.name == name && isSameNamespace(b.namespace, namespace) {
			out = append(out, b.placement)
		}
	}
	return out
}

// isSameNamespace reports whether two namespaces may be the same. An empty namespace may become any namespace,
// because a kustomization or a tool sets it later.
func isSameNamespace(a, b string) bool { return a == b || a == "" || b == "" }

// policyOf returns the Policy n, or nil for other objects.
func policyOf(file string, n *yamlnode.Node) *Policy {
	if groupOf(n) != policyGroup || textAt(n, "kind") != "Policy" {
		return nil
	}
	actions := yamlnode.NodesAt(n, "spec.remediationAction")
	if len(actions) == 0 {
		actions = yamlnode.NodesAt(n, "spec.policy-templates.[].objectDefinition.spec.remediationAction")
	}
	enforces := func(v *yamlnode.Node) bool { text, _ := yamlnode.Text(v); return strings.EqualFold(text, "enforce") }
	return &Policy{
		By: objectTitle(n), Pos: yamlnode.At(file, n), namespace: textAt(n, "metadata.namespace"), name: textAt(n, "metadata.name"),
		enforced: !isTrue(n, "spec.disabled") && slices.ContainsFunc(actions, enforces),
	}
}

// isTrue reports whether the first value at a field path is true.
func isTrue(n *yamlnode.Node, where string) bool {
	for _, v := range yamlnode.NodesAt(n, where) {
		is, err := strconv.ParseBool(v.Value)
		return err == nil && is
	}
	return false
}

// generatedPolicy is a Policy that a PolicyGenerator makes.
type generatedPolicy struct {
	Policy
	manifests []string // files, and directories of kustomizations, sorted
}

// generatedPolicies returns the policies that the generators of a kustomization make.
func (r *repository) generatedPolicies(k *kustomization) []generatedPolicy {
	var out []generatedPolicy
	for _, config := range k.Generators {
		file, data := config.File, []byte(config.Text)
		if file != "" {
			data = r.read(file)
		}
		docs, err := documents(cmp.Or(file, k.File), data)
		if err != nil {
			continue // the kustomize build reports this error
		}
		for _, n := range docs {
			if groupOf(n) != policyGroup || textAt(n, "kind") != "PolicyGenerator" {
				continue
			}
			for _, p := range yamlnode.NodesAt(n, "policies.[]") {
				pos := config.Pos
				if file != "" {
					pos = yamlnode.At(file, p)
				}
				out = append(out, r.generatedPolicy(path.Dir(k.File), n, p, pos))
			}
		}
	}
	return out
}

// generatedPolicy returns the policy that an item p of the PolicyGenerator n makes. dir is the
// directory of the kustomization.
func (r *repository) generatedPolicy(dir string, n, p *yamlnode.Node, pos diag.Pos) generatedPolicy {
	action := cmp.Or(textAt(p, "remediationAction"), textAt(n, "policyDefaults.remediationAction"))
	disabled := isTrue(n, "policyDefaults.disabled")
	if len(yamlnode.NodesAt(p, "disabled")) > 0 {
		disabled = isTrue(p, "disabled")
	}
	out := generatedPolicy{Policy: Policy{By: fmt.Sprintf("Policy %q", textAt(p, "name")), Pos: pos, enforced: strings.EqualFold(action, "enforce") && !disabled}}
	for _, placement := range slices.Concat(yamlnode.NodesAt(p, "placement"), yamlnode.NodesAt(n, "policyDefaults.placement")) {
		if title := r.placementTitle(dir, placement); title != "" {
			out.Placements = []string{title}
			break
		}
	}
	for _, v := range yamlnode.NodesAt(p, "manifests.[].path") {
		text, _ := yamlnode.Text(v)
		name := path.Join(dir, text)
		if !r.isDir(name) || r.kustomization(name) != nil {
			out.manifests = append(out.manifests, name)
			continue
		}
		for _, file := range r.manifestsIn(name) {
			out.manifests = append(out.manifests, path.Join(name, file))
		}
	}
	slices.Sort(out.manifests)
	return out
}

// placementTitle returns the placement that a PolicyGenerator names, such as `Placement "prod"`. It returns ""
// if the generator makes its own placement.
func (r *repository) placementTitle(dir string, n *yamlnode.Node) string {
	for _, field := range [][2]string{{"placementName", "Placement"}, {"placementRuleName", "PlacementRule"}} {
		if name := textAt(n, field[0]); name != "" {
			return fmt.Sprintf("%s %q", field[1], name)
		}
	}
	for _, field := range []string{"placementPath", "placementRulePath"} {
		name := textAt(n, field)
		docs, err := documents(name, r.read(path.Join(dir, name)))
		if name != "" && err == nil && len(docs) > 0 {
			return objectTitle(docs[0])
		}
	}
	return ""
}

// addPolicies adds an entry for each enforced Policy that contains an operator of unknown content:
// text that cannot be parsed, or a template that only a cluster can evaluate.
func (s *scanner) addPolicies() {
	seen := map[*Policy]bool{}
	for _, d := range s.Declarations {
		holder, isTemplate := s.holders[d.Pos], strings.Contains(d.Package+d.Namespace, "{{")
		isText := d.Obstacle != "" && d.Package == ""
		if holder == nil || !holder.enforced || seen[holder] || !d.IsOperator() || !isText && !isTemplate {
			continue
		}
		seen[holder] = true
		reason := fmt.Sprintf("%s %s", d.Kind, d.Obstacle)
		if d.Obstacle == "" {
			reason = "templates are not evaluated offline"
		}
		s.Entries = append(s.Entries, &Entry{By: holder.By, Pos: holder.Pos, unknown: []string{reason}})
	}
}

// Policies returns the policies that make clusters create a declaration: the policy that contains
// it, and policies that generators make from its file.
func (s *Survey) Policies(d Declaration) []*Policy {
	if s.generated == nil {
		s.generated = s.generatedPolicies()
	}
	out := slices.Clone(s.generated[d.Pos.File])
	if holder := s.holders[d.Pos]; holder != nil && holder.enforced {
		out = append(out, holder)
	}
	return out
}

// generatedPolicies returns the enforced policies that generators make, by file. A policy contains the
// declarations in its file.
func (s *Survey) generatedPolicies() map[string][]*Policy {
	out := map[string][]*Policy{}
	for _, dir := range slices.Sorted(maps.Keys(s.repo.kustomizations)) {
		k := s.repo.kustomizations[dir]
		if k == nil {
			continue
		}
		for _, p := range s.repo.generatedPolicies(k) {
			files := map[string]bool{}
			for _, name := range p.manifests {
				files[name] = true
				s.repo.addIncluded(name, files, map[string]bool{})
			}
			for file := range files {
				if p.enforced && len(s.byFile[file]) > 0 {
					out[file] = append(out[file], &p.Policy)
				}
			}
		}
	}
	return out
}
