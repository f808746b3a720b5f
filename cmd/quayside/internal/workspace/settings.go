package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// ReadSettings returns quayside.yaml merged with the files that it extends. Without a
// quayside.yaml it returns the defaults.
func (r Root) ReadSettings() (*settings.Workspace, error) {
	data, err := r.Read(settings.FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return settings.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	return settings.Load(r.name+settings.FileName, data, settings.Repository{Dir: r.repoPath(), Read: r.readShared})
}

// readShared reads a file of the repository. shown is the name of the file in positions: its path
// relative to the workspace or, at a revision, its path in the repository with the revision as a
// prefix. Symbolic links cannot leave the repository, or the workspace if there is no repository.
func (r Root) readShared(name string) (shown string, data []byte, err error) {
	shown = r.name + r.fromWorkspace(name)
	if rev, ok := strings.CutSuffix(r.name, r.repoPath()+"/"); ok {
		shown = rev + name
	}
	data, err = ReadFile(source.File{FS: r.repoFiles(), Name: name, DisplayPath: shown})
	if at := new(fs.PathError); errors.As(err, &at) {
		at.Op = "open" // the same message on every file system
	}
	return shown, data, err
}

// fromWorkspace converts a path relative to the repository to one relative to the workspace.
func (r Root) fromWorkspace(name string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.repoPath()), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// checkOperators returns an error for each pattern of spec.clusters that matches no operator of lock,
// and for each misspelled operator of a waiver. A pattern may also match in another workspace with the
// same settings.
func (p *Project) checkOperators(lock *lockfile.File) error {
	w := p.Settings
	have := operatorKeys(lock)
	if len(have) == 0 {
		return nil
	}
	var faults diag.List
	for i, c := range w.Clusters {
		for j, pattern := range c.Operators {
			field := fmt.Sprintf("spec.clusters[%d].operators[%d]", i, j)
			at := w.At(field)
			if matchesOperator(pattern, have) || p.MatchesElsewhere(at.File, func(other *Project) bool {
				lock, err := other.Lock()
				return err != nil || matchesOperator(pattern, operatorKeys(lock)) // reported there
			}) {
				continue
			}
			hint := "delete the pattern"
			if len(c.Operators) == 1 {
				hint = "delete the cluster, or name its operators: without a pattern it gets all of them"
			}
			faults.Add(at, diag.Hintf(at, hint, "%s", noOperator(field, pattern, have)))
		}
	}
	for field, v := range p.unmatchedWaivers(have) {
		if suggestOperator(v.Operator, have) != "" {
			faults.Addf(w.At(field), "%s", noOperator(field, v.Operator, have))
		}
	}
	return faults.Err()
}

// unmatchedWaivers returns the waivers whose operator is not in have, by the field of the operator. An
// inherited waiver may be for another workspace.
func (p *Project) unmatchedWaivers(have []string) map[string]diag.Waiver {
	out := map[string]diag.Waiver{}
	for i, v := range p.Settings.Policy.Waivers {
		field := diag.Item("spec.policy.waivers", i) + ".operator"
		if v.Operator != "" && !anyMatches(v.Operator, have) && !p.MatchesElsewhere(p.Settings.At(field).File, func(other *Project) bool {
			lock, err := other.Lock()
			return err != nil || anyMatches(v.Operator, operatorKeys(lock))
		}) {
			out[field] = v
		}
	}
	return out
}

// waiverWarnings returns a warning for each waiver of an operator that lock does not have. It is no
// error: a waiver is merged before the branch that adds or removes its operator. Misspelled operators
// are errors of checkOperators.
func (p *Project) waiverWarnings(lock *lockfile.File) []diag.Warning {
	var out []diag.Warning
	have := operatorKeys(lock)
	for field, v := range p.unmatchedWaivers(have) {
		if suggestOperator(v.Operator, have) == "" {
			out = append(out, diag.Warning{Pos: p.Settings.At(field), Code: "waiver-unused", Msg: noOperator(field, v.Operator, have)})
		}
	}
	return diag.SortWarnings(out)
}

// noOperator returns the message for a field that names an operator that the lock does not have.
func noOperator(field, name string, have []string) string {
	hint := suggestOperator(name, have)
	if hint == "" && len(have) > 0 {
		hint = " (available: " + diag.Some(have, 5) + ")"
	}
	return fmt.Sprintf("%s: no operator %q in %s%s", field, name, LockFile, hint)
}

// anyMatches reports whether a name or pattern of the policy matches one of the names.
func anyMatches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return diag.Matches(pattern, name) })
}

// operatorKeys returns the operators of a lock, including those that are being removed.
func operatorKeys(lock *lockfile.File) []string {
	var out []string
	for _, pin := range lock.Pins {
		out = append(out, pin.Key())
	}
	for _, l := range lock.Leaving {
		out = append(out, l.Key())
	}
	return out
}

// matchesOperator reports whether a pattern of spec.clusters matches one of the operators.
func matchesOperator(pattern string, operators []string) bool {
	return slices.ContainsFunc(operators, func(name string) bool {
		gets, err := (profile.Cluster{Operators: []string{pattern}}).Gets(name)
		return err != nil || gets // render reports the error
	})
}

// MatchesElsewhere reports whether match accepts another workspace of the repository that has
// settings from file. The name of file is as in positions. In a workspace at a revision, no other
// workspace is opened, and the result is true for every inherited file.
func (p *Project) MatchesElsewhere(file string, match func(*Project) bool) bool {
	if p.name != "" {
		return file != p.Settings.File
	}
	dirs, err := Workspaces(p.Top())
	return err == nil && slices.ContainsFunc(dirs, func(dir string) bool {
		if dir == p.repoPath() {
			return false
		}
		other, err := Open(Dir(filepath.Join(p.Top(), filepath.FromSlash(dir))), p.Env)
		return err == nil && slices.ContainsFunc(append(other.Settings.Extended, settings.FileName), func(name string) bool {
			return path.Join(dir, name) == path.Join(p.repoPath(), file)
		}) && match(other)
	})
}

// suggestOperator returns the operators that a name could mean, for a message.
func suggestOperator(name string, have []string) string {
	for _, key := range have {
		if _, pkg, _ := strings.Cut(key, "/"); pkg == name {
			return fmt.Sprintf(" (did you mean %q?)", key)
		}
	}
	return diag.DidYouMean(name, have)
}

// CheckPatterns returns an error for each name or pattern of clusters and operators in the settings
// that matches nothing.
func (p *Project) CheckPatterns() error {
	lock, err := p.LockIfAny()
	if err != nil || lock == nil {
		return errors.Join(err, p.checkPatterns())
	}
	return errors.Join(p.checkPatterns(), p.checkOperators(lock))
}

// PolicyRules returns the rules of the policy in CEL.
func (p *Project) PolicyRules() []diff.CELRule {
	var out []diff.CELRule
	for _, r := range p.Settings.Policy.Rules {
		out = append(out, diff.CELRule{Name: r.Name, Expression: r.Expression, Message: r.Message, Tree: r.On == "tree", Pos: r.Pos})
	}
	return out
}

// checkPatterns returns an error for each invalid rule of the policy, and for each cluster name or
// pattern in the settings that matches no cluster. Inherited settings may name clusters of other
// workspaces.
func (p *Project) checkPatterns() error {
	w, have := p.Settings, p.Clusters()
	var faults diag.List
	if rules := p.PolicyRules(); len(rules) > 0 {
		faults.Add(diag.Pos{}, diff.Policy{Rules: rules}.CheckRules())
	}
	check := func(field string, patterns []string) {
		for i, pattern := range patterns {
			at := w.At(diag.Item(field, i))
			if !anyMatches(pattern, have) && !p.MatchesElsewhere(at.File, func(other *Project) bool { return anyMatches(pattern, other.Clusters()) }) {
				faults.Addf(at, "%s: no cluster %q in this workspace (available: %s)%s", diag.Item(field, i), pattern, strings.Join(have, ", "), diag.DidYouMean(pattern, have))
			}
		}
	}
	for i, l := range w.Policy.Clusters {
		check(diag.Item("spec.policy.clusters", i)+".names", l.Names)
	}
	for i, v := range w.Policy.Waivers {
		check(diag.Item("spec.policy.waivers", i)+".clusters", v.Clusters)
	}
	faults.Add(diag.Pos{}, p.checkFollows())
	return faults.Err()
}

// checkFollows returns an error if spec.follows names no other workspace of the Git repository.
// Promotions report ambiguous names and cycles.
func (p *Project) checkFollows() error {
	w := p.Settings
	if w.Follows == "" {
		return nil
	}
	if _, err := p.Clone(); err != nil {
		return nil //nolint:nilerr // without a repository, the other workspaces are unknown
	}
	dirs, err := Workspaces(p.Top())
	if err != nil || w.FollowsPath() && slices.Contains(dirs, path.Join(p.repoPath(), w.Follows)) {
		return err
	}
	var have []string
	for _, dir := range dirs {
		if dir == p.repoPath() {
			continue
		}
		if w.FollowsPath() {
			have = append(have, filetree.Relative(p.repoPath(), dir))
			continue
		}
		other, err := Dir(filepath.Join(p.Top(), filepath.FromSlash(dir))).ReadSettings()
		if err != nil {
			return nil //nolint:nilerr // its own commands report the error
		}
		name := other.Title(dir)
		if name == w.Follows {
			return nil
		}
		have = append(have, name)
	}
	at := w.At("spec.follows")
	return diag.Errorf(at, "spec.follows: no environment %q (available: %s)%s", w.Follows, cmp.Or(strings.Join(have, ", "), "none"), diag.DidYouMean(w.Follows, have))
}
