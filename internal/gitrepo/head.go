package gitrepo

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// HeadBranch returns the branch that is checked out; empty where it is a commit.
func (r *Repo) HeadBranch(ctx context.Context) string {
	target := ""
	if r.only != nil {
		target, _ = r.only.line(ctx, "symbolic-ref", "--quiet", "HEAD") // fails where there is none
	} else if data, err := os.ReadFile(filepath.Join(r.own, "HEAD")); err == nil {
		target, _ = strings.CutPrefix(string(data), "ref: ")
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(target), "refs/heads/")
	if !ok {
		return ""
	}
	return branch
}

// Origin returns the URL of the remote origin on another machine, without what
// is secret in it; empty where there is none.
func (r *Repo) Origin() (string, error) {
	set, err := r.settings()
	if err != nil {
		return "", err
	}
	return WithoutSecrets(set["remote.origin.url"]), nil
}

// WithoutSecrets returns a URL of a repository on another machine without a
// password, and over https without a user, who may be a token; empty where it
// names no other machine.
func WithoutSecrets(remote string) string {
	u, err := url.Parse(remote)
	switch {
	case !strings.Contains(remote, "://"): // user@host:path, or a path
		if host, _, ok := strings.Cut(remote, ":"); !ok || strings.ContainsAny(host, `/\`) || len(host) < 2 {
			return ""
		}
		return remote
	case err != nil || u.Host == "":
		return ""
	case u.Scheme == "http" || u.Scheme == "https" || u.User == nil:
		u.User = nil
	default:
		u.User = url.User(u.User.Username())
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
