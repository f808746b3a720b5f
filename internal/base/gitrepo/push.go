package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/quayside/quayside/internal/base/diag"
)

// Push pushes a branch to a remote, given as for [Repo.Address], and reports whether the
// remote changed. force replaces a different branch of the same name. Over https, Push uses
// the credentials of the URL, or token if not empty, or Git's configuration. Over ssh, it
// uses Git's configuration. Over plain http, it sends token only to this machine
// ([Confidential]), and credentials in the URL of another machine are an error.
func (r *Repo) Push(ctx context.Context, remote, branch, token string, force bool) (moved bool, err error) {
	git, err := r.program()
	if err != nil {
		return false, err
	}
	to, err := r.Address(remote)
	if err != nil {
		return false, err
	}
	name := to
	if r.remoteURL(remote) != "" {
		name = remote
		if to, err = git.line(ctx, "remote", "get-url", "--push", "--all", "--", remote); err != nil {
			return false, err
		}
	}
	if moved, err = git.push(ctx, name, strings.Split(to, "\n"), branch, token, force); err != nil {
		err = fmt.Errorf("pushing %s to %s: %w", branch, diag.Redact(remote), err)
	}
	return moved, err
}

// push pushes a branch to a remote with these URLs. It passes the token only to their hosts
// and never on the command line.
func (p *program) push(ctx context.Context, remote string, urls []string, branch, token string, force bool) (moved bool, err error) {
	var env, helpers []string
	for _, to := range urls {
		takes, err := takesToken(to)
		if err != nil {
			return false, err
		}
		if takes && token != "" {
			scheme, rest, _ := strings.Cut(to, "://")
			host, _, _ := strings.Cut(rest, "/")
			env = []string{"QUAYSIDE_PUSH_TOKEN=" + token}
			helpers = append(helpers, "-c", "credential."+scheme+"://"+host+`.helper=!f() { test "$1" = get && echo username=x-access-token && echo "password=$QUAYSIDE_PUSH_TOKEN"; }; f`)
		}
	}
	ref := string(plumbing.NewBranchReferenceName(branch))
	var args []string
	if env != nil {
		args = append([]string{"-c", "credential.helper="}, helpers...)
	}
	args = append(args, "push", "--porcelain")
	if force {
		args = append(args, "--force")
	}
	out, err := p.run(ctx, env, nil, append(args, "--", remote, ref+":"+ref)...)
	switch {
	case bytes.Contains(out, []byte("\n!\t")) && bytes.Contains(out, []byte("[rejected]")):
		return false, errors.New("the remote has another version of this branch: choose a different branch name, or overwrite the remote branch with --force")
	case err == nil:
		return !bytes.Contains(out, []byte("\n=\t")), nil
	case !strings.Contains(err.Error(), "terminal prompts disabled"):
		return false, err
	case token == "":
		return false, fmt.Errorf("%w: set GIT_TOKEN", err)
	case env == nil:
		return false, fmt.Errorf("%w: GIT_TOKEN is only sent over https", err)
	default:
		return false, err
	}
}

// takesToken reports whether a push to a URL can use a token. Credentials in a URL without
// a confidential connection are an error.
func takesToken(remote string) (bool, error) {
	u, err := url.Parse(remote)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http":
		return false, nil //nolint:nilerr // a path, or ssh
	case u.User != nil && !Confidential(u):
		return false, errors.New("credentials are only sent over https: use https, or remove the credentials from the URL")
	default:
		return u.User == nil && Confidential(u), nil
	}
}

// Confidential reports whether requests to u are protected in transit: by https, or because
// they do not leave this machine.
func Confidential(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
