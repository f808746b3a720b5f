package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/quayside/quayside/internal/diag"
)

// Push sends a branch to a remote, given by its name or by a URL (https, ssh,
// or a path), and reports whether the remote did not hold it yet. force replaces
// what is there. Over https the credentials are
// those of the URL, else token, where that is not empty; over ssh those of the
// agent. Over plain http none are sent, but to a loopback address.
func (r *Repo) Push(ctx context.Context, remote, branch, token string, force bool) (moved bool, err error) {
	target, err := r.remote(remote)
	if err != nil {
		return false, err
	}
	spec := fmt.Sprintf("refs/heads/%s:refs/heads/%s", branch, branch)
	if force {
		spec = "+" + spec
	}
	to, err := r.Address(remote)
	if err != nil {
		return false, err
	}
	credentials, err := auth(to, token)
	if err != nil {
		return false, fmt.Errorf("pushing %s to %s: %w", branch, diag.Redact(remote), err)
	}
	needs, err := r.pushNeeds(to)
	if err != nil {
		return false, err
	}
	lfs, err := r.needsLFS(branch)
	if err != nil {
		return false, err
	}
	if lfs {
		needs = append(needs, "the filter lfs")
	}
	if git := r.program(needs, "the push is made"); git != nil {
		name := target.Config().Name
		if name == anonymous {
			name = to
		}
		if credentials == nil {
			token = ""
		}
		if moved, err = git.push(ctx, name, to, branch, token, force, lfs); err != nil {
			err = fmt.Errorf("pushing %s to %s: %w", branch, diag.Redact(remote), err)
		}
		return moved, err
	}
	opt := &git.PushOptions{RemoteName: target.Config().Name, RemoteURL: to, Auth: credentials, RefSpecs: []config.RefSpec{config.RefSpec(spec)}, Force: force}
	err = target.PushContext(ctx, opt)
	if err != nil {
		remote, err = diag.Redact(remote), &redactedError{err}
	}
	switch {
	case errors.Is(err, git.NoErrAlreadyUpToDate):
		return false, nil
	case errors.Is(err, git.ErrNonFastForwardUpdate):
		return false, fmt.Errorf("pushing %s to %s: %w", branch, remote, errOther)
	case (errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed)) && strings.HasPrefix(to, "http:"):
		return false, fmt.Errorf("pushing %s to %s: %w: GIT_TOKEN is sent over https only", branch, remote, err)
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return false, fmt.Errorf("pushing %s to %s: %w: set GIT_TOKEN", branch, remote, err)
	case err != nil:
		return false, fmt.Errorf("pushing %s to %s: %w", branch, remote, err)
	}
	return true, nil
}

// Address returns where a push to a remote goes, which is given as for [Repo.Push]:
// a URL, or a path.
func (r *Repo) Address(remote string) (string, error) {
	target, err := r.remote(remote)
	if err != nil {
		return "", err
	}
	urls := target.Config().URLs
	return urls[len(urls)-1], nil
}

// anonymous is the name of a remote that is given by its URL.
const anonymous = "anonymous"

func (r *Repo) remote(name string) (*git.Remote, error) {
	found, err := r.git.Remote(name)
	if err == nil {
		return found, nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if name, err = filepath.Abs(name); err != nil {
			return nil, err
		}
	} else if _, err := transport.NewEndpoint(name); err != nil || !hasHost(name) {
		return nil, fmt.Errorf("no remote %q in this repository", diag.Redact(name))
	}
	return r.git.CreateRemoteAnonymous(&config.RemoteConfig{Name: anonymous, URLs: []string{name}})
}

// hasHost reports whether s names another machine, or a file by URL.
func hasHost(s string) bool {
	e, err := transport.NewEndpoint(s)
	return err == nil && (e.Host != "" || e.Protocol == "file" && len(s) > 7 && s[:7] == "file://")
}

// auth returns the credentials to send to a remote: the token, nil where the
// transport finds its own or there are none.
func auth(remote, token string) (transport.AuthMethod, error) {
	u, err := url.Parse(remote)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http":
		return nil, nil //nolint:nilerr,nilnil // a path, or ssh: see above
	case u.User != nil && !Confidential(u):
		return nil, errors.New("credentials are sent over https only: write https, or leave them out")
	case u.User != nil || token == "" || !Confidential(u):
		return nil, nil //nolint:nilnil // documented above
	default:
		return &http.BasicAuth{Username: "x-access-token", Password: token}, nil
	}
}

// Confidential reports whether nobody on the way reads what is sent over https
// or http: the latter only where it stays on this machine.
func Confidential(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// redactedError prints an error without the credentials of the URLs in it.
type redactedError struct{ err error }

func (e *redactedError) Error() string { return diag.Redact(e.err.Error()) }
func (e *redactedError) Unwrap() error { return e.err }
