package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// program runs Git itself in a directory, for what go-git does not do.
type program struct{ path, dir string }

// newProgram returns Git for a directory, nil where it is not installed.
func newProgram(dir string) *program {
	found, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	return &program{found, dir}
}

// at returns the same for another directory.
func (p *program) at(dir string) *program { return &program{p.path, dir} }

// command returns a command of Git, with env added to its environment.
func (p *program) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, append([]string{"-C", p.dir}, args...)...)
	cmd.Env = append(environ(), env...)
	return cmd
}

// run returns what one command of Git prints, with env added to its
// environment. Its error holds what Git says, without credentials.
func (p *program) run(ctx context.Context, env []string, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := p.command(ctx, env, args...)
	cmd.Stdin = stdin
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		what := slices.IndexFunc(args, func(a string) bool { return a != "-c" && !strings.Contains(a, "=") })
		return out.Bytes(), &redactedError{fmt.Errorf("git %s: %w: %s", args[what], err, bytes.TrimSpace(talk.Bytes()))}
	}
	return out.Bytes(), nil
}

// line is run for a command that prints one line.
func (p *program) line(ctx context.Context, args ...string) (string, error) {
	out, err := p.run(ctx, nil, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// environ returns the environment for Git: what says which repository and which
// index to take is left out, as somebody who runs within a hook has it. Paths are
// taken as they are, nobody is asked for anything, and no file is written only
// to be faster the next time.
func environ() []string {
	place := []string{
		"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS",
		"GIT_QUARANTINE_PATH", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains(place, name)
	})
	return append(env, "GIT_LITERAL_PATHSPECS=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
}

// commit has Git make a commit in a work tree of its own that lasts no longer,
// so that filters, hooks and signatures are as for a commit of the user's, and
// then the branch.
func (p *program) commit(ctx context.Context, ref plumbing.ReferenceName, parent string, c Commit) (hash string, err error) {
	tmp, err := os.MkdirTemp("", "quayside-work-")
	if err != nil {
		return "", err
	}
	work := filepath.Join(tmp, "work")
	defer func() {
		_, _ = p.run(context.WithoutCancel(ctx), nil, nil, "worktree", "remove", "--force", "--", work) // 'git gc' removes what is left
		err = errors.Join(err, os.RemoveAll(tmp))
	}()
	lazy := []string{"GIT_LFS_SKIP_SMUDGE=1"} // what lies in other files is not needed
	if _, err := p.run(ctx, lazy, nil, "worktree", "add", "--quiet", "--detach", "--", work, parent); err != nil {
		return "", err
	}
	in := p.at(work)
	if err := in.stage(ctx, c.Changes); err != nil {
		return "", err
	}
	when := fmt.Sprintf("@%d %s", c.When.Unix(), c.When.Format("-0700"))
	var who []string
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		who = append(who, "GIT_"+role+"_NAME="+c.Author.Name, "GIT_"+role+"_EMAIL="+c.Author.Email, "GIT_"+role+"_DATE="+when)
	}
	if _, err := in.run(ctx, who, strings.NewReader(c.Message), "commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--file=-"); err != nil {
		return "", err
	}
	if hash, err = in.line(ctx, "rev-parse", "HEAD"); err != nil {
		return "", err
	}
	return p.point(ctx, ref, hash, c.Force)
}

// point makes ref stand for a commit, and returns that. One that differs from
// what ref stands for by no more than its signature, which never is the same
// twice, is left out.
func (p *program) point(ctx context.Context, ref plumbing.ReferenceName, hash string, force bool) (string, error) {
	if target, err := p.line(ctx, "symbolic-ref", "--quiet", string(ref)); err == nil {
		return "", standsFor(target)
	}
	if old, err := p.line(ctx, "rev-parse", "--verify", "--quiet", string(ref)); err == nil {
		if old == hash {
			return hash, nil
		}
		both, err := p.run(ctx, nil, nil, "log", "--no-walk=unsorted", "-z", "--no-show-signature", "--format=%T %P %an %ae %ad %cn %ce %cd%n%B", "--date=raw", old, hash)
		if err != nil {
			return "", err
		}
		if a, b, _ := bytes.Cut(both, []byte{0}); bytes.Equal(a, bytes.TrimSuffix(b, []byte{0})) {
			return old, nil
		}
		if !force {
			return "", errExists
		}
	}
	args := []string{"branch", "--quiet", "--no-track"}
	if force {
		args = append(args, "--force")
	}
	_, err := p.run(ctx, nil, nil, append(args, "--", ref.Short(), hash)...)
	return hash, err
}

// stage writes changes into the work tree and the index. No link leads out.
func (p *program) stage(ctx context.Context, changes []Change) error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var added, removed strings.Builder
	for _, c := range changes {
		name := filepath.FromSlash(c.Path)
		if c.Removed {
			removed.WriteString(c.Path + "\x00")
			continue
		}
		added.WriteString(c.Path + "\x00")
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(c.Path)), 0o777); err != nil {
			return err
		}
		if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
			if err := root.Remove(name); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, c.Data, 0o666); err != nil {
			return err
		}
	}
	listed := []string{"--sparse", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"}
	if removed.Len() > 0 {
		if _, err := p.run(ctx, nil, strings.NewReader(removed.String()), append([]string{"rm", "--quiet"}, listed...)...); err != nil {
			return err
		}
	}
	if added.Len() == 0 {
		return nil
	}
	_, err = p.run(ctx, nil, strings.NewReader(added.String()), append([]string{"add"}, listed...)...)
	return err
}

// push sends a branch, and reports whether the remote did not hold it yet. The
// token, where it is not empty, is given to the host of to alone, and never on
// the command line. With lfs, what lies outside of Git is sent first where no hook
// does that.
func (p *program) push(ctx context.Context, remote, to, branch, token string, force, lfs bool) (moved bool, err error) {
	var env, args []string
	if token != "" {
		scheme, rest, _ := strings.Cut(to, "://")
		host, _, _ := strings.Cut(rest, "/")
		env = []string{"QUAYSIDE_PUSH_TOKEN=" + token}
		args = []string{"-c", "credential.helper=", "-c", "credential." + scheme + "://" + host + `.helper=!f() { test "$1" = get && echo username=x-access-token && echo "password=$QUAYSIDE_PUSH_TOKEN"; }; f`}
	}
	ref := string(plumbing.NewBranchReferenceName(branch))
	if lfs {
		if err := p.pushLFS(ctx, env, args, remote, ref); err != nil {
			return false, err
		}
	}
	args = append(args, "push", "--porcelain")
	if force {
		args = append(args, "--force")
	}
	out, err := p.run(ctx, env, nil, append(args, "--", remote, ref+":"+ref)...)
	if bytes.Contains(out, []byte("\n!\t")) && bytes.Contains(out, []byte("[rejected]")) {
		return false, errOther
	}
	return err == nil && !bytes.Contains(out, []byte("\n=\t")), err
}

// pushLFS does what the hook does that 'git lfs install' sets up, where there is
// none.
func (p *program) pushLFS(ctx context.Context, env, args []string, remote, ref string) error {
	hook, err := p.line(ctx, "rev-parse", "--git-path", "hooks/pre-push")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(hook) {
		hook = filepath.Join(p.dir, hook)
	}
	if _, err := os.Stat(hook); err == nil {
		return nil
	}
	_, err = p.run(ctx, env, nil, append(slices.Clip(args), "lfs", "push", "--", remote, ref)...)
	return err
}

// unclean returns the files in and below paths that are not as the commit that
// is checked out has them, seen through filters: changed, new or ignored.
func (p *program) unclean(ctx context.Context, paths []string) ([]string, error) {
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=traditional", "--"}
	out, err := p.run(ctx, nil, nil, append(args, paths...)...)
	var names []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if len(entry) > 3 {
			names = append(names, entry[3:])
		}
	}
	return names, err
}
