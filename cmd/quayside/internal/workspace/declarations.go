package workspace

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
)

// DeclarationState describes a declaration in the repository: an OLM object, text that looks like one, or an
// object of a GitOps tool that installs a chart. Reason is set if the workspace does not read the
// declaration.
type DeclarationState struct {
	Pos       string             `json:"position"`
	Kind      string             `json:"kind"`
	Namespace string             `json:"namespace,omitempty" doc:"empty if a kustomization or a GitOps tool sets it"`
	Name      string             `json:"name"`
	Package   string             `json:"package,omitempty"`
	AppliedBy []string           `json:"appliedBy" doc:"the objects of GitOps tools, the policies and the kustomizations through which the declaration reaches a cluster, each with its position"`
	Clusters  []string           `json:"clusters" doc:"names, servers or kubeconfigs of the known clusters that the declaration reaches"`
	Read      bool               `json:"read"`
	Selected  bool               `json:"selected" doc:"whether it counts as a declaration: false for a chart of a GitOps tool that is not selected as an operator"`
	Operators []DeclaredOperator `json:"operators,omitempty" doc:"the operators that a chart of a GitOps tool declares"`
	Reason    string             `json:"reason,omitempty" doc:"why it is not read"`
}

// DeclaredOperator is an operator that is declared by an object of a GitOps tool that installs a chart.
type DeclaredOperator struct {
	Package  string `json:"package"`
	Versions string `json:"versions,omitempty" doc:"range of versions; absent: any"`
	Catalog  string `json:"catalog,omitempty" doc:"absent: any"`
}

// String returns the package, the range and the catalog. It omits empty fields.
func (r DeclaredOperator) String() string {
	text := strings.TrimSpace(r.Package + " " + r.Versions)
	if r.Catalog != "" {
		text += " of " + r.Catalog
	}
	return text
}

// DeclarationStates returns the state of every declaration in the repository of the workspace,
// sorted by position. The workspace must be on disk.
func (p *Project) DeclarationStates() ([]DeclarationState, error) {
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return nil, err
	}
	s := repo.Survey
	set, _ := p.DeclarationsIfAny() // unreadReason returns the faults
	if set == nil {
		set = &declare.Set{}
	}
	read := newReadDeclarations(set)
	declared := repo.Declared[p.repoPath()]
	includes := s.Includes(declared)
	out := []DeclarationState{}
	all := slices.Concat(s.Declarations, s.Charts)
	slices.SortStableFunc(all, func(a, b survey.Declaration) int { return a.Pos.Compare(b.Pos) })
	for _, d := range all {
		state := DeclarationState{
			Pos: p.fromRepository(d.Pos).String(), Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Package: d.Package, AppliedBy: []string{}, Clusters: []string{},
		}
		for _, a := range s.Appliers(d) {
			if by := fmt.Sprintf("%s (%s)", a.Entry.By, p.fromRepository(a.Pos)); !slices.Contains(state.AppliedBy, by) {
				state.AppliedBy = append(state.AppliedBy, by)
			}
			if a.Cluster != "" && !slices.Contains(state.Clusters, a.Cluster) {
				state.Clusters = append(state.Clusters, a.Cluster)
			}
		}
		for _, holder := range s.Policies(d) {
			policy := *holder
			policy.Pos = p.fromRepository(holder.Pos)
			state.AppliedBy = append(state.AppliedBy, policy.String())
		}
		for _, dir := range s.TopKustomizations(d) {
			state.AppliedBy = append(state.AppliedBy, fmt.Sprintf("kustomization %q", p.fromWorkspace(dir)))
		}
		state.Read = read.has(p.fromRepository(d.Pos), d, includes(d.Pos.File))
		state.Selected = !d.Chart || d.Selected || state.Read || d.Alone && slices.Contains(declared, d.Pos.File)
		switch {
		case state.Read && d.Chart:
			state.Operators = operatorsAt(set, p.fromRepository(d.Pos))
		case state.Read:
		case !d.Alone && !state.Selected:
			state.Reason = "not selected as an operator: the object also applies a directory; move the chart to a separate object"
		case !state.Selected:
			state.Reason = "not selected as an operator: list its file in spec.declarations, or give it the label " + survey.SelectLabel + `: "true"`
		default:
			state.Reason = p.unreadReason(set, s, d, includes)
		}
		out = append(out, state)
	}
	return out, nil
}

// operatorsAt returns the operators that the declaration at a position requests.
func operatorsAt(set *declare.Set, pos diag.Pos) []DeclaredOperator {
	var out []DeclaredOperator
	for _, s := range set.Subscriptions {
		if s.Pos == pos && s.Package != "" {
			r := DeclaredOperator{Package: s.Package, Versions: s.Range}
			if s.Catalog != nil {
				r.Catalog = s.Catalog.String()
			}
			out = append(out, r)
		}
	}
	return out
}

// readDeclarations contains the declarations that the workspace reads, by position and by name.
type readDeclarations struct {
	positions map[diag.Pos]bool
	names     map[string]bool // such as "Subscription namespace/name"
}

func newReadDeclarations(set *declare.Set) readDeclarations {
	r := readDeclarations{map[diag.Pos]bool{}, map[string]bool{}}
	add := func(kind, namespace, name string, pos diag.Pos) {
		r.positions[pos] = true
		r.names[kind+" "+namespace+"/"+name] = true
	}
	for _, s := range set.Subscriptions {
		add("operator", s.Namespace, s.Package, s.Pos)
		r.names["operator /"+s.Package] = true
	}
	for _, g := range set.OperatorGroups {
		add("OperatorGroup", g.Namespace, g.Name, g.Pos)
		r.names["OperatorGroup /"+g.Name] = true
	}
	for _, c := range set.CatalogSources {
		add("CatalogSource", c.ID.Namespace, c.ID.Name, c.Pos)
		add("ClusterCatalog", "", c.ID.Name, c.Pos)
		r.names["CatalogSource /"+c.ID.Name] = true
	}
	return r
}

// has reports whether the workspace reads the declaration d at pos. If included is true (a declared
// path includes the file of d), has ignores pos, and only looks for a declaration with the same name.
func (r readDeclarations) has(pos diag.Pos, d survey.Declaration, included bool) bool {
	kind, name := d.Kind, d.Name
	if d.IsOperator() {
		kind, name = "operator", cmp.Or(d.Package, d.Name)
	}
	return d.Obstacle == "" && (r.positions[pos] && !d.IsTemplated() || included && r.names[kind+" "+d.Namespace+"/"+name])
}

// unreadReason returns the reason why the workspace does not read a declaration.
func (p *Opened) unreadReason(set *declare.Set, s *survey.Survey, d survey.Declaration, includes func(file string) bool) string {
	if d.Obstacle != "" {
		return d.Obstacle
	}
	if dir := s.Unlisted(d); dir != "" {
		return p.unlistedReason(dir)
	}
	if !includes(d.Pos.File) {
		reason := "no path of spec.declarations includes it"
		if i := slices.IndexFunc(set.Subscriptions, func(o declare.Subscription) bool {
			return d.Package != "" && o.Package == d.Package && (d.Namespace == "" || d.Namespace == o.Namespace)
		}); i >= 0 {
			reason += fmt.Sprintf(": %s is read from %s", set.Subscriptions[i].Key(), set.Subscriptions[i].Pos)
		}
		return reason
	}
	file := p.fromWorkspace(d.Pos.File)
	isOf := func(u declare.Unread) bool {
		return u.Name == "" || u.Name == d.Name || u.Package != "" && u.Package == d.Package
	}
	find := func(match func(u declare.Unread) bool) string {
		i := slices.IndexFunc(set.Unread, func(u declare.Unread) bool { return isOf(u) && match(u) })
		if i < 0 {
			return ""
		}
		return set.Unread[i].Reason
	}
	dirs := map[string]bool{}
	for _, dir := range s.Kustomizations(d) {
		dirs[p.fromWorkspace(dir)] = true
	}
	reason := cmp.Or(
		find(func(u declare.Unread) bool { return u.Pos.File == file }),
		find(func(u declare.Unread) bool { return dirs[path.Dir(u.Pos.File)] }),
		find(func(u declare.Unread) bool { return dirs[u.Build] && path.Dir(u.Pos.File) != u.Build }),
	)
	if i := slices.IndexFunc(set.Unread, func(u declare.Unread) bool { return reason != "" && u.Reason == reason }); i >= 0 && set.Unread[i].Build != "" && set.Unread[i].Pos.File != file {
		reason = fmt.Sprintf("kustomization %q cannot be built: %s: %s", set.Unread[i].Build, set.Unread[i].Pos, reason)
	}
	return cmp.Or(reason, "no kustomization lists this file, a kustomization removes the declaration, or the file has only a part of an object")
}

// unlistedReason returns the reason why a file in dir is not read: the kustomization in dir does
// not list it.
func (r Root) unlistedReason(dir string) string {
	return fmt.Sprintf("is not listed by the kustomization %q", r.fromWorkspace(dir))
}

// Proposal is a proposal for spec.declarations in a new workspace.
type Proposal struct {
	survey.Proposal
	from func(name string) string
}

// Propose returns a proposal for a new workspace: the paths with declarations that no other
// workspace reads. It is empty if all these declarations are in the default directory.
func (p *Project) Propose() (Proposal, error) {
	out := Proposal{from: p.fromWorkspace}
	repo, err := p.Surroundings()
	if err != nil || repo == nil {
		return out, err
	}
	var taken []string
	for dir, paths := range repo.Declared {
		if dir != p.repoPath() {
			taken = append(taken, paths...)
		}
	}
	out.Proposal = repo.Survey.Propose(taken)
	return out, nil
}

// Paths returns the declaration paths for a workspace with the given environments. open are the
// paths of operators that none of the environments has. All paths are relative to the workspace.
func (p Proposal) Paths(environments []string) (chosen, open []declare.Path) {
	relative := func(list []survey.Choice) []declare.Path {
		var out []declare.Path
		for _, c := range list {
			out = append(out, declare.Path{Path: p.from(c.Path), Cluster: c.Cluster})
		}
		return out
	}
	a, b := p.Choose(environments)
	return relative(a), relative(b)
}
