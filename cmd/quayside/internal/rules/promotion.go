package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/health/gate"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// Past is the history of a lock along the first parents.
type Past struct {
	bundles map[string]bool          // names
	digests map[lockfile.Digest]bool // of bundles
	shallow bool                     // whether the clone lacks older commits
}

// ParsePast returns the history of a lock. changed contains the lines that were added or removed by
// commits that changed the lock. shallow means that the clone lacks older commits.
func ParsePast(changed []byte, shallow bool) *Past {
	p := &Past{bundles: map[string]bool{}, digests: map[lockfile.Digest]bool{}, shallow: shallow}
	for line := range bytes.Lines(changed) {
		field, value, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimLeft(line, "+-")), []byte(": "))
		text := string(bytes.Trim(value, `"'`))
		switch string(field) {
		case "bundle":
			p.bundles[text] = true
		case "image":
			p.digests[lockfile.Digest(imageref.DigestIn(text))] = true
		case "contentDigest":
			p.digests[lockfile.Digest(text)] = true
		}
	}
	return p
}

// Upstream is the upstream environment of a workspace.
type Upstream struct {
	Title string // its name

	state    *State
	own      string // name of the downstream workspace
	settings *settings.Workspace
	lock     *lockfile.File
	declared *declare.Set
	past     *Past
}

// Unproven returns the reason why observations of the environment do not yet permit the installation of a
// bundle. It returns "" if they permit it, or if the operator needs no promotion. judge compares the
// observations with rule, as 'quayside promote' does.
func (u *Upstream) Unproven(namespace, pkg, bundle string, rule gate.Criteria, judge func(gate.Pin) gate.Verdict) (string, error) {
	if !u.governs(namespace, pkg) {
		return "", nil
	}
	pin, pinned := lockfile.Pin{}, false
	if u.lock != nil {
		pin, pinned = u.lock.Pin(namespace, pkg)
	}
	if !pinned || pin.Bundle != bundle {
		return fmt.Sprintf("is no longer installed in %s, the upstream environment of %s, and has no observations there", u.Title, u.own), nil
	}
	clusters, err := profile.ClustersThatGet(pin.Key(), u.settings.Clusters)
	v := judge(gate.Pin{Environment: u.Title, Operator: pin.Key(), Bundle: string(pin.BundleDigest()), Checksum: string(pin.Checksum()), Clusters: clusters})
	if err != nil || v.Pass {
		return "", err
	}
	return "is " + v.Text(rule, u.Title), nil
}

// governs reports whether an operator must be promoted from the environment. This is the case if the
// environment declares the operator, and no waiver exempts it.
func (u *Upstream) governs(namespace, pkg string) bool {
	return u.Declares(namespace, pkg) && !u.state.accept(Finding{Code: aheadCode, Subject: namespace + "/" + pkg}).Waived
}

// Upstream returns the upstream environment of the workspace. It returns nil if there is no Git repository, if
// there is no upstream environment, or if that environment has never had a lock.
func (s *State) Upstream() (*Upstream, error) {
	if s.Settings.Follows == "" || s.Others == nil || s.Past == nil {
		return nil, nil
	}
	others, err := s.Others()
	if err != nil {
		return nil, err
	}
	followed := slices.DeleteFunc(slices.Clone(others), func(o Other) bool { return !s.follows(o) })
	if len(followed) == 0 {
		return nil, nil // reported by checkFollows
	}
	if len(followed) > 1 {
		return nil, diag.Errorf(s.Settings.At("spec.follows"), "spec.follows: %q is the name of several environments, %s and %s: specify the directory, such as %s", s.Settings.Follows, followed[0].Dir, followed[1].Dir, filetree.Relative(s.Dir, followed[0].Dir))
	}
	o := followed[0]
	out := &Upstream{state: s, own: s.Settings.Title(s.Dir)}
	w, err := o.Settings()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Dir, err)
	}
	out.Title, out.settings = w.Title(o.Dir), w
	if out.lock, err = o.Lock(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", o.Dir, err)
	}
	if out.past, err = s.Past(o); err != nil {
		return nil, err
	}
	if out.lock == nil && len(out.past.bundles) == 0 {
		return nil, nil // not set up yet
	}
	if out.declared, err = o.Declared(); err != nil {
		out.declared = &declare.Set{} // its own commands report the error; the operators in its lock are known
	}
	return out, nil
}

// follows reports whether o is the workspace that spec.follows names.
func (s *State) follows(o Other) bool {
	w, err := o.Settings()
	return err == nil && Follows(s.Dir, s.Settings, o.Dir, w) || s.Settings.FollowsPath() && o.Dir == path.Join(s.Dir, s.Settings.Follows)
}

// Follows reports whether spec.follows of workspace w, in the directory dir, names workspace other, in otherDir.
func Follows(dir string, w *settings.Workspace, otherDir string, other *settings.Workspace) bool {
	if w.FollowsPath() {
		return otherDir == path.Join(dir, w.Follows)
	}
	return w.Follows != "" && other.Title(otherDir) == w.Follows
}

// Declares reports whether the environment declares an operator now, or declared it when it was locked. It
// returns false if spec.only of the declaration excludes the environment.
func (u *Upstream) Declares(namespace, pkg string) bool {
	is := func(d declare.Subscription) bool { return d.Package == pkg && d.Namespace == namespace }
	isOnlyHere := func(d declare.Subscription) bool {
		return is(d) && d.Only != nil && !slices.Contains(d.Only, u.Title)
	}
	switch {
	case slices.ContainsFunc(u.state.Declared().Subscriptions, isOnlyHere):
		return false
	case slices.ContainsFunc(u.declared.Subscriptions, is):
		return true
	case u.lock == nil || slices.ContainsFunc(u.declared.Elsewhere, is):
		return false
	}
	pin, ok := u.lock.Pin(namespace, pkg)
	return ok && len(pin.RequestedBy) > 0
}

// HasHad reports whether the environment has or had a bundle with this name.
func (u *Upstream) HasHad(bundle string) bool {
	return u.past.bundles[bundle] || u.lock != nil && slices.ContainsFunc(u.lock.Pins, func(p lockfile.Pin) bool { return p.Bundle == bundle })
}

// HasHadDigest reports whether the environment has or had a bundle with the digest of the pin's bundle.
func (u *Upstream) HasHadDigest(pin lockfile.Pin) bool {
	digest := pin.BundleDigest()
	return u.past.digests[digest] || u.lock != nil && slices.ContainsFunc(u.lock.Pins, func(p lockfile.Pin) bool { return p.BundleDigest() == digest })
}

// Refusal returns the reason why the workspace must not install a bundle of an operator, or "".
func (u *Upstream) Refusal(namespace, pkg, bundle string) string {
	switch {
	case !u.governs(namespace, pkg) || u.HasHad(bundle):
		return ""
	case u.past.shallow:
		return fmt.Sprintf("has possibly never been in %s, the upstream environment of %s: the clone is too shallow to decide", u.Title, u.own)
	default:
		return fmt.Sprintf("has not been in %s, which %s follows", u.Title, u.own)
	}
}

// Awaits reports whether the environment declares an operator but has not installed it yet. The
// workspace must then not install it either.
func (u *Upstream) Awaits(d declare.Subscription) bool {
	if !u.governs(d.Namespace, d.Package) {
		return false
	}
	if u.lock == nil {
		return true
	}
	_, pinned := u.lock.Pin(d.Namespace, d.Package)
	return !pinned
}

// aheadCode is the code of findings about promotion.
const aheadCode = "ahead-of-upstream"

// checkPromotion returns an error for each operator whose bundle the upstream environment has never had. It
// skips operators that the upstream environment does not declare.
func checkPromotion(s *State) (Findings, error) {
	if s.Lock == nil {
		return nil, nil
	}
	u, err := s.Upstream()
	if err != nil || u == nil {
		return nil, err
	}
	var out Findings
	for _, pin := range s.Lock.Pins {
		if !u.Declares(pin.Namespace, pin.Package) || u.HasHadDigest(pin) {
			continue
		}
		f := Finding{Severity: Error, Code: aheadCode, Pos: s.declarationPos(pin), Subject: pin.Key()}
		f.Msg = fmt.Sprintf("%s is pinned at %s, which has never been in the upstream environment %s: %s", pin.Key(), pin.Bundle, u.Title, pin.BundleDigest().Short())
		f.Hint = fmt.Sprintf("install it in %s first, then run 'quayside promote %s %s'; for a hotfix, or a version from before the first commit, add a waiver for ahead-of-upstream", u.Title, u.Title, u.own)
		if u.past.shallow {
			f.Msg = fmt.Sprintf("cannot tell whether %s has been in %s, the upstream environment of %s: the clone is shallow", pin.Bundle, u.Title, u.own)
			f.Hint = "run 'git fetch --unshallow'; in CI set fetch-depth: 0 (GitHub) or GIT_DEPTH: 0 (GitLab)"
		}
		out = append(out, s.accept(f))
	}
	return out, nil
}

// EvaluateFollowers evaluates the rule about promotion for each environment that follows the
// workspace. The findings have positions in this workspace, because its change breaks the rule.
// EvaluateFollowers skips an unreadable environment, whose own commands report the error.
func EvaluateFollowers(s *State) (Findings, error) {
	if s.Others == nil || s.Past == nil {
		return nil, nil
	}
	others, err := s.Others()
	if err != nil {
		return nil, err
	}
	own := s.asOther()
	readPast := sync.OnceValues(func() (*Past, error) { return s.Past(own) })
	var out Findings
	for _, o := range others {
		w, err := o.Settings()
		if err != nil || !Follows(o.Dir, w, s.Dir, s.Settings) {
			continue
		}
		lock, err := o.Lock()
		if err != nil {
			continue
		}
		past, err := readPast()
		if err != nil {
			return nil, err
		}
		found, err := checkPromotion(&State{
			Dir: o.Dir, Settings: w, Lock: lock, Today: s.Today,
			Declared: sync.OnceValue(func() *declare.Set {
				set, err := o.Declared()
				if err != nil {
					return &declare.Set{} // its own commands report the error
				}
				return set
			}),
			Others: func() ([]Other, error) { return []Other{own}, nil },
			Past:   func(Other) (*Past, error) { return past, nil },
		})
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			f.Rule = "promotion"
			out = append(out, s.fromFollower(f, w.Title(o.Dir), lock, past))
		}
	}
	return out, nil
}

// asOther converts the state of this workspace to an Other.
func (s *State) asOther() Other {
	return Other{
		Dir:      s.Dir,
		Settings: func() (*settings.Workspace, error) { return s.Settings, nil },
		Lock: func() (*lockfile.File, error) {
			if s.Lock == nil {
				return nil, fs.ErrNotExist
			}
			return s.Lock, nil
		},
		Declared: func() (*declare.Set, error) { return s.Declared(), nil },
	}
}

// fromFollower converts a finding about the lock of a follower to a finding of this workspace.
func (s *State) fromFollower(f Finding, title string, lock *lockfile.File, past *Past) Finding {
	namespace, pkg, _ := strings.Cut(f.Subject, "/")
	pin, _ := lock.Pin(namespace, pkg)
	f.Pos = diag.Pos{File: settings.LockFile}
	if s.Lock != nil {
		f.Pos = s.declarationPos(lockfile.Pin{Namespace: namespace, Package: pkg, Pos: f.Pos})
	}
	f.Msg = title + ": " + f.Msg
	if !past.shallow {
		f.Hint = fmt.Sprintf("install version %s of %s in %s first, and commit its lock; or remove %s from %s, or add a waiver for ahead-of-upstream there", pin.Version, pkg, s.Settings.Title(s.Dir), pkg, title)
	}
	return f
}

// checkRequirements returns an error for each operator that cannot run with the versions in the settings, or
// with the namespaces in its declaration. If spec.requirements is warn, it returns warnings instead of errors.
func checkRequirements(s *State) (Findings, error) {
	severity, hint := Error, "upgrade or remove the operator, or correct the versions in "+settings.FileName+" or the namespaces that it watches; to accept it, add a waiver for requirement"
	if s.Settings.Requirements == "warn" {
		severity, hint = Warning, ""
	}
	var out Findings
	for _, w := range s.Unfit {
		out = append(out, Finding{Severity: severity, Code: w.Code, Pos: w.Pos, Subject: w.Subject, Msg: w.Msg, Hint: hint, Waived: w.Waived})
	}
	return out, nil
}
