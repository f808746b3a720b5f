// Package rules evaluates rules about a state: the content of one commit or of the work tree of a workspace,
// with the observations and the time. A rule is a function from a state to findings, with an entry in [Table].
// Rules write nothing and depend on no command.
//
// Start from [Evaluate].
package rules

import (
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// State is the state of a workspace. Its functions load data on demand, because most states break no rule.
type State struct {
	Dir      string // directory of the workspace in its repository
	Settings *settings.Workspace
	Lock     *lockfile.File      // nil without a lock
	Declared func() *declare.Set // empty if invalid
	Observed []*health.Summary   // observations of clusters, at most one per cluster
	Today    string              // "2026-11-21", in UTC; empty: no waiver expires
	Now      time.Time

	Merged     *lockfile.File    // lock that a merge of Lock would replace; nil: unknown
	Severities map[string]string // most severe findings of the change from Merged, by operator; nil: unknown

	Rendered     *render.Result
	Overlays     map[string][]string // overlay directories of each cluster, as in profile.Cluster
	OverlayFiles func(cluster string) (fs.FS, error)
	Files        fs.FS                       // of the workspace
	Fleet        func() (fleet.Fleet, error) // clusters of Rendered

	Base       func(lockfile.Pin) []declare.Subscription // declarations in the paths that spec.declarations had when the pin was locked
	Existing   func() []declare.Subscription             // declarations in the declared paths, including files to be removed
	InGit      func() bool
	HeadLock   func() *lockfile.File       // lock of HEAD; nil if there is none, and during a merge
	Others     func() ([]Other, error)     // other workspaces of the repository; nil at a revision
	Repository func() (*Repository, error) // nil if the workspace is not on disk

	Ignored    func(names []string) []string  // returns the names that Git ignores; nil: unknown
	Attributes func() ([]ChangedFiles, error) // Git attributes that change files of the workspace; nil: unknown

	Past  func(Other) (*Past, error) // history of another workspace's lock; nil without a repository
	Unfit []diag.Warning             // operators of Lock that cannot run with the settings and declarations
}

// Other is another workspace of the repository.
type Other struct {
	Dir      string // in the repository
	Settings func() (*settings.Workspace, error)
	Lock     func() (*lockfile.File, error)
	Declared func() (*declare.Set, error)
	Tree     func() (*filetree.Tree, error)
}

// Repository describes the rest of the repository that contains the workspace.
type Repository struct {
	Declared map[string][]string // declared paths of each workspace, by its directory
	Below    []string            // directories of the workspaces below this one
	Trees    []string            // directories of rendered trees
	Survey   *survey.Survey
	Remotes  *gitrepo.Remotes // nil without a Git repository
}

// Severity is the effect of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the command fails
	Warning Severity = "warning" // the command prints it
)

// Finding is one result of a rule.
type Finding struct {
	Rule     string // its ID in the table
	Severity Severity
	Code     string // code for waivers; empty: no waiver can accept the finding
	Pos      diag.Pos
	Subject  string // as in diag.Warning
	Msg      string
	Hint     string // command or edit that fixes the problem
	Waived   bool   // whether a waiver accepts it
	Err      error  // cause with an error type; may be nil

	// Later is set for an error that a later step of the same change will fix. For example, after the render,
	// the user edits the objects that the GitOps tool applies. Commands that write print it as a warning.
	Later bool
}

// Findings are the results of several rules.
type Findings []Finding

// Err returns the errors that are not waived, sorted by position.
func (fs Findings) Err() error {
	var faults diag.List
	for _, f := range fs {
		if f.Severity != Error || f.Waived {
			continue
		}
		msg := f.Msg
		if f.Code != "" {
			msg += " [" + f.Code + "]"
		}
		faults = append(faults, &diag.Error{Pos: f.Pos, Msg: msg, Hint: f.Hint, Err: f.Err})
	}
	return faults.Err()
}

// WhileWriting returns the findings for a command that writes one step of a change. Errors with Later are
// turned into warnings.
func (fs Findings) WhileWriting() Findings {
	out := slices.Clone(fs)
	for i, f := range out {
		if f.Later && f.Severity == Error {
			out[i].Severity, out[i].Msg = Warning, f.Msg+"; 'quayside verify' fails until this is fixed"
		}
	}
	return out
}

// Warnings returns the warnings, in the order of the table.
func (fs Findings) Warnings() []diag.Warning {
	var out []diag.Warning
	for _, f := range fs {
		if f.Severity == Warning {
			out = append(out, f.warning())
		}
	}
	return out
}

func (f Finding) warning() diag.Warning {
	w := diag.Warning{Pos: f.Pos, Code: f.Code, Msg: f.Msg, Subject: f.Subject, Waived: f.Waived}
	if w.Msg == "" && f.Err != nil {
		w.Msg = f.Err.Error()
	}
	return w
}

// Introduced returns a copy of fs. Errors that also occur in before are turned into warnings.
func (fs Findings) Introduced(before Findings) Findings {
	type key struct{ rule, subject, msg string }
	had := map[key]bool{}
	for _, f := range before {
		had[key{f.Rule, f.Subject, f.Msg}] = true
	}
	out := slices.Clone(fs)
	for i, f := range out {
		if had[key{f.Rule, f.Subject, f.Msg}] {
			out[i].Severity = Warning
		}
	}
	return out
}

// accept returns f, marked as waived if a waiver accepts it.
func (s *State) accept(f Finding) Finding {
	f.Waived = s.waive([]diag.Warning{f.warning()})[0].Waived
	return f
}

// errorsOf returns a finding for each error of a list.
func errorsOf(faults diag.List) Findings {
	var out Findings
	for _, f := range faults {
		out = append(out, Finding{Severity: Error, Pos: f.Pos, Msg: f.Msg, Hint: f.Hint, Err: f.Err})
	}
	return out
}

// warningsOf returns a finding for each warning.
func warningsOf(ws []diag.Warning) Findings {
	var out Findings
	for _, w := range ws {
		out = append(out, Finding{Severity: Warning, Code: w.Code, Pos: w.Pos, Subject: w.Subject, Msg: w.Msg, Waived: w.Waived})
	}
	return out
}

// waive marks the warnings that a waiver accepts.
func (s *State) waive(ws []diag.Warning) []diag.Warning {
	return diag.MarkWaived(ws, s.Settings.Policy.Waivers, s.Today)
}

// matchesElsewhere reports whether match returns true for another workspace of the repository whose
// settings include file. file is a file name in the format of positions. At a revision, other
// workspaces are not read; the result is then true unless file is the workspace's own quayside.yaml.
func (s *State) matchesElsewhere(file string, match func(*settings.Workspace, Other) bool) bool {
	if s.Others == nil {
		return file != s.Settings.File
	}
	others, err := s.Others()
	shared := path.Join(s.Dir, file)
	return err == nil && slices.ContainsFunc(others, func(o Other) bool {
		w, err := o.Settings()
		return err == nil && slices.ContainsFunc(append(slices.Clone(w.Extended), settings.FileName), func(name string) bool {
			return path.Join(o.Dir, name) == shared
		}) && match(w, o)
	})
}
