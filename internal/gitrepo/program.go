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

// program runs Git itself in a directory.
type program struct{ path, dir string }

// program returns Git for the work tree. A bare repository is refused: one may
// lie among the files of a clone, with settings that run programs.
func (r *Repo) program() (*program, error) {
	if r.root == "" {
		return nil, errors.New("a bare repository has no work tree: use a clone of it")
	}
	found, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("git is not installed: it compares the work tree, commits and pushes")
	}
	return &program{found, r.root}, nil
}

// run returns the output of one command of Git, with env added to its
// environment. Its error holds Git's message, without credentials.
func (p *program) run(ctx context.Context, env []string, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.path, append([]string{"-C", p.dir}, args...)...)
	cmd.Env = append(environ(), env...)
	cmd.Stdin = stdin
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		name := slices.IndexFunc(args, func(a string) bool { return a != "-c" && !strings.Contains(a, "=") })
		return out.Bytes(), &redactedError{fmt.Errorf("git %s: %w: %s", args[name], err, bytes.TrimSpace(messages.Bytes()))}
	}
	return out.Bytes(), nil
}

// line is run for a command that prints one line.
func (p *program) line(ctx context.Context, args ...string) (string, error) {
	out, err := p.run(ctx, nil, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// environ returns the environment for Git, without the variables that choose a
// repository or an index, which a process started by a hook has. Paths are taken
// literally, nobody is asked for anything, messages are in English, and no file is
// written only to be faster the next time.
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
	return append(env, "GIT_LITERAL_PATHSPECS=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LANGUAGE=en")
}

// Unclean returns the files in and below paths, which are relative to the work
// tree, that are not as HEAD has them: changed, new, ignored or deleted, seen
// through Git's filters. Absent are those that a sparse work tree leaves out.
func (r *Repo) Unclean(ctx context.Context, paths []string) (differ, absent []string, err error) {
	git, err := r.program()
	if err != nil {
		return nil, nil, err
	}
	for _, list := range []struct {
		args  []string
		skip  int // bytes before the path
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

// runsHooks reports whether a commit runs hooks.
func (p *program) runsHooks(ctx context.Context) (bool, error) {
	if set, _ := p.line(ctx, "config", "--name-only", "--get-regexp", `^hook\.`); set != "" { // fails if there are none
		return true, nil
	}
	dir, err := p.line(ctx, "rev-parse", "--git-path", "hooks")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.dir, dir)
	}
	return err == nil && slices.ContainsFunc([]string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}), err
}

// redactedError prints an error without the credentials of the URLs in it.
type redactedError struct{ err error }

func (e *redactedError) Error() string { return diag.Redact(e.err.Error()) }
func (e *redactedError) Unwrap() error { return e.err }
