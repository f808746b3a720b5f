package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/quayside/quayside/internal/diag"
)

// Push pushes a branch to a remote (see [Repo.Address]), and reports whether the remote branch changed. The
// remote branch must be at the commit old. If old is empty, the remote branch must not exist. The credentials
// depend on the URL:
//   - https: the credentials in the URL, or token if it is not empty, or the credentials in Git's
//     configuration.
//   - ssh: the credentials in Git's configuration.
//   - http: token is sent only to this machine (see [Confidential]). Credentials in a URL of another machine
//     are an error.
func (r *Repo) Push(ctx context.Context, remote, branch, token, old string) (changed bool, err error) {
	ref := string(plumbing.NewBranchReferenceName(branch))
	if changed, err = r.push(ctx, remote, token, ref+":"+ref, old); err != nil {
		err = fmt.Errorf("pushing %s to %s: %w", branch, diag.Redact(remote), err)
	}
	return changed, err
}

// DeleteRemoteBranch deletes a branch of a remote. The parameters have the same meaning as in [Repo.Push].
func (r *Repo) DeleteRemoteBranch(ctx context.Context, remote, branch, token, old string) error {
	if _, err := r.push(ctx, remote, token, ":"+string(plumbing.NewBranchReferenceName(branch)), old); err != nil {
		return fmt.Errorf("deleting %s in %s: %w", branch, diag.Redact(remote), err)
	}
	return nil
}

func (r *Repo) push(ctx context.Context, remote, token, spec, old string) (changed bool, err error) {
	_, ref, _ := strings.Cut(spec, ":")
	out, err := r.runRemote(ctx, remote, token, true, "push", "--porcelain", "--force-with-lease="+ref+":"+old, "--", "", spec)
	if bytes.Contains(out, []byte("\n!\t")) && bytes.Contains(out, []byte("[rejected]")) {
		return false, errors.New("the remote branch was changed during this run: run the command again")
	}
	return err == nil && !bytes.Contains(out, []byte("\n=\t")), err
}

// RemoteBranches returns the commits of remote branches by name. If below is "up", the branches are "up" and
// "up/…". It uses the same credentials as [Repo.Push]. It fetches the commits as loose objects, which go-git
// can read, and creates no references.
func (r *Repo) RemoteBranches(ctx context.Context, remote, below, token string) (map[string]*Revision, error) {
	head := string(plumbing.NewBranchReferenceName(below))
	list, err := r.runRemote(ctx, remote, token, false, "ls-remote", "--", "", head, head+"/*")
	if err != nil {
		return nil, fmt.Errorf("listing branches of %s: %w", diag.Redact(remote), err)
	}
	hashes := map[string]plumbing.Hash{}
	fetch := []string{"-c", "fetch.unpackLimit=1000000", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", ""}
	for line := range strings.Lines(string(list)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		branch, found := strings.CutPrefix(ref, "refs/heads/")
		if !found {
			continue
		}
		hashes[branch] = plumbing.NewHash(hash)
		if _, err := r.git.CommitObject(hashes[branch]); err != nil {
			fetch = append(fetch, ref)
		}
	}
	if fetch[len(fetch)-1] != "" {
		if _, err := r.runRemote(ctx, remote, token, false, fetch...); err != nil {
			return nil, fmt.Errorf("fetching branches of %s: %w", diag.Redact(remote), err)
		}
	}
	out := map[string]*Revision{}
	for branch, hash := range hashes {
		commit, err := r.commitAt(hash)
		if err != nil {
			return nil, fmt.Errorf("branch %s of %s: %w", branch, diag.Redact(remote), err)
		}
		out[branch] = &Revision{repo: r, name: branch, commit: commit}
	}
	return out, nil
}

// CloneBranch clones a branch of a remote to a temporary directory. The function done removes the
// directory. The clone has the history of the branch, but no files in the work tree. If branch is empty, it
// clones the default branch. remote and token have the same meaning as in [Repo.Push].
func (r *Repo) CloneBranch(ctx context.Context, remote, branch, token string) (clone *Repo, done func() error, err error) {
	dir, err := os.MkdirTemp("", "quayside-clone-")
	if err != nil {
		return nil, nil, err
	}
	done = func() error { return os.RemoveAll(dir) }
	args := []string{"-c", "core.hooksPath=/dev/null", "clone", "--quiet", "--no-checkout", "--no-tags", "--single-branch", "--template="}
	if branch != "" {
		args = append(args, "--branch", branch)
	}
	if _, err := r.runRemote(ctx, remote, token, false, append(args, "--", "", dir)...); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cloning %s: %w", diag.Redact(remote), err), done())
	}
	if clone, err = Open(dir); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return clone, done, nil
}

// OpenOrClone opens the repository at a path, or clones the default branch of a URL as [Repo.CloneBranch] does.
func (r *Repo) OpenOrClone(ctx context.Context, name, token string) (clone *Repo, done func() error, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		clone, err := Open(name)
		return clone, func() error { return nil }, err
	}
	return r.CloneBranch(ctx, name, "", token)
}

// runRemote runs a git command that accesses a remote. An empty argument in args stands for the name of the
// remote. If pushes is true, it uses the push URLs of the remote. It passes the token only to the hosts in the
// URLs, and never on the command line.
func (r *Repo) runRemote(ctx context.Context, remote, token string, pushes bool, args ...string) ([]byte, error) {
	p, err := r.program()
	if err != nil {
		return nil, err
	}
	name, err := r.Address(remote)
	if err != nil {
		return nil, err
	}
	urls := name
	if r.remoteURL(remote) != "" {
		get := []string{"remote", "get-url", "--all"}
		if pushes {
			get = append(get, "--push")
		}
		name = remote
		if urls, err = p.runLine(ctx, append(get, "--", remote)...); err != nil {
			return nil, err
		}
	}
	var env, helpers []string
	for to := range strings.SplitSeq(urls, "\n") {
		takes, err := acceptsToken(to)
		if err != nil {
			return nil, err
		}
		if takes && token != "" {
			scheme, rest, _ := strings.Cut(to, "://")
			host, _, _ := strings.Cut(rest, "/")
			env = []string{"QUAYSIDE_PUSH_TOKEN=" + token}
			helpers = append(helpers, "-c", "credential."+scheme+"://"+host+`.helper=!f() { test "$1" = get && echo username=x-access-token && echo "password=$QUAYSIDE_PUSH_TOKEN"; }; f`)
		}
	}
	if env != nil {
		helpers = append([]string{"-c", "credential.helper="}, helpers...)
	}
	args = slices.Clone(args)
	args[slices.Index(args, "")] = name
	out, err := p.run(ctx, env, nil, append(helpers, args...)...)
	switch {
	case err == nil || !strings.Contains(err.Error(), "terminal prompts disabled"):
		return out, err
	case token == "":
		return nil, fmt.Errorf("%w: set GIT_TOKEN", err)
	case env == nil:
		return nil, fmt.Errorf("%w: GIT_TOKEN is only sent over https", err)
	default:
		return nil, err
	}
}

// acceptsToken reports whether a token may be sent to a URL. Credentials in a URL without a
// confidential connection are an error.
func acceptsToken(remote string) (bool, error) {
	u, err := url.Parse(remote)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http":
		return false, nil //nolint:nilerr // a path or an ssh address
	case u.User != nil && !Confidential(u):
		return false, errors.New("credentials are only sent over https: use https, or remove the credentials from the URL")
	default:
		return u.User == nil && Confidential(u), nil
	}
}

// Confidential reports whether others cannot read requests to u: the requests use https or do not leave this
// machine.
func Confidential(u *url.URL) bool {
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
