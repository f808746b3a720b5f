package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Push sends a branch to a remote, given by its name or by a URL (https, ssh,
// or a path). force replaces what is there. Over https the credentials are
// those of the URL, else token, where that is not empty; over ssh those of the
// agent.
func (r *Repo) Push(ctx context.Context, remote, branch, token string, force bool) error {
	target, err := r.remote(remote)
	if err != nil {
		return err
	}
	spec := fmt.Sprintf("refs/heads/%s:refs/heads/%s", branch, branch)
	if force {
		spec = "+" + spec
	}
	opt := &git.PushOptions{RemoteName: target.Config().Name, RefSpecs: []config.RefSpec{config.RefSpec(spec)}, Force: force}
	opt.Auth = auth(target.Config().URLs[0], token)
	err = target.PushContext(ctx, opt)
	switch {
	case errors.Is(err, git.NoErrAlreadyUpToDate):
		return nil
	case errors.Is(err, git.ErrNonFastForwardUpdate):
		return fmt.Errorf("pushing %s to %s: it holds another branch of this name: choose another, or replace it with --force", branch, shown(remote))
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("pushing %s to %s: %w: set GIT_TOKEN", branch, shown(remote), err)
	case err != nil:
		return fmt.Errorf("pushing %s to %s: %w", branch, shown(remote), err)
	}
	return nil
}

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
		return nil, fmt.Errorf("no remote %q in this repository", name)
	}
	return r.git.CreateRemoteAnonymous(&config.RemoteConfig{Name: "anonymous", URLs: []string{name}})
}

// hasHost reports whether s names another machine, or a file by URL.
func hasHost(s string) bool {
	e, err := transport.NewEndpoint(s)
	return err == nil && (e.Host != "" || e.Protocol == "file" && len(s) > 7 && s[:7] == "file://")
}

func auth(remote, token string) transport.AuthMethod {
	u, err := url.Parse(remote)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || token == "" {
		return nil
	}
	return &http.BasicAuth{Username: "x-access-token", Password: token}
}

// shown returns a remote without the password that it may hold.
func shown(remote string) string {
	if u, err := url.Parse(remote); err == nil && u.User != nil {
		return u.Redacted()
	}
	return remote
}
