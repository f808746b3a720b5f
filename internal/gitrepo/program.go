package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// program runs the git command in a directory.
type program struct{ path, dir string }

// program returns the git command for the work tree. It returns an error for a bare repository: a clone may
// contain a bare repository among its files, whose settings may run programs.
func (r *Repo) program() (*program, error) {
	if r.root == "" {
		return nil, errors.New("a bare repository has no work tree: use a clone of it")
	}
	found, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("git is not installed: needed to compare the work tree, commit and push")
	}
	return &program{found, r.root}, nil
}

// run runs a git command and returns its output. env is added to the environment. An error contains
// the message of Git, without credentials.
func (p *program) run(ctx context.Context, env []string, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.path, append([]string{"-C", p.dir}, args...)...)
	cmd.Env = append(gitEnvironment(), env...)
	cmd.Stdin = stdin
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		name := slices.IndexFunc(args, func(a string) bool { return a != "-c" && !strings.Contains(a, "=") })
		return out.Bytes(), &redactedError{fmt.Errorf("git %s: %w: %s", args[name], err, bytes.TrimSpace(messages.Bytes()))}
	}
	return out.Bytes(), nil
}

// runLine runs a git command and returns its output without surrounding white space.
func (p *program) runLine(ctx context.Context, args ...string) (string, error) {
	out, err := p.run(ctx, nil, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// gitEnvironment returns the environment for git commands. It removes the variables that select a
// repository or an index, because Git sets them in hooks. It makes Git take paths literally, disables
// prompts and optional locks, and sets the language of messages to English.
func gitEnvironment() []string {
	repositoryVars := []string{
		"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
		"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS",
		"GIT_QUARANTINE_PATH", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return slices.Contains(repositoryVars, name)
	})
	return append(env, "GIT_LITERAL_PATHSPECS=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LANGUAGE=en")
}

// Ignored returns the paths that Git ignores and does not track. paths are relative to the work tree.
func (r *Repo) Ignored(ctx context.Context, paths []string) ([]string, error) {
	p, err := r.program()
	if err != nil {
		return nil, err
	}
	env := []string{"GIT_LITERAL_PATHSPECS=0"} // check-ignore does not accept literal pathspecs
	out, err := p.run(ctx, env, strings.NewReader(strings.Join(paths, "\x00")), "check-ignore", "--stdin", "-z")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil // none is ignored
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), err
}

// DirtyFiles compares the files in and below paths with HEAD, as git status does. differ lists the changed,
// new, ignored and deleted files. absent lists the files that are not checked out because of a sparse
// checkout. paths are relative to the work tree.
func (r *Repo) DirtyFiles(ctx context.Context, paths []string) (differ, absent []string, err error) {
	git, err := r.program()
	if err != nil {
		return nil, nil, err
	}
	for _, list := range []struct {
		args  []string
		skip  int // number of bytes before the path
		named *[]string
	}{
		{[]string{"-c", "core.fsmonitor=false", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=traditional", "--"}, 3, &differ},
		{[]string{"ls-files", "-z", "-t", "--"}, 2, &absent},
	} {
		out, err := git.run(ctx, nil, nil, append(list.args, paths...)...)
		if err != nil {
			return nil, nil, err
		}
		for entry := range strings.SplitSeq(string(out), "\x00") {
			if len(entry) > list.skip && (list.named == &differ || entry[0] == 'S') {
				*list.named = append(*list.named, entry[list.skip:])
			}
		}
	}
	return differ, absent, nil
}

// runsHooks reports whether the repository has hooks that run on commit.
func (p *program) runsHooks(ctx context.Context) (bool, error) {
	if set, _ := p.runLine(ctx, "config", "--name-only", "--get-regexp", `^hook\.`); set != "" { // ignore the error: the command fails if there are none
		return true, nil
	}
	dir, err := p.runLine(ctx, "rev-parse", "--git-path", "hooks")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.dir, dir)
	}
	return err == nil && slices.ContainsFunc([]string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}), err
}

// redactedError wraps an error and removes credentials in URLs from its message.
type redactedError struct{ err error }

func (e *redactedError) Error() string { return diag.Redact(e.err.Error()) }
func (e *redactedError) Unwrap() error { return e.err }
