package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// batch reads by Git itself: objects from one process that answers until this
// one ends. Like go-git it fetches nothing, and heeds no replacements.
type batch struct {
	git   *program
	start func() (*pipe, error)
	mu    sync.Mutex // a question and its answer
}

// pipe is a running 'git cat-file'.
type pipe struct {
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Reader
	talk bytes.Buffer
}

func newBatch(git *program) *batch {
	b := &batch{git: git}
	b.start = sync.OnceValues(func() (*pipe, error) {
		p := &pipe{cmd: git.command(context.Background(), local(), "cat-file", "--batch-command")}
		p.cmd.Stderr = &p.talk
		in, err := p.cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		p.in, p.out = in, bufio.NewReader(out)
		return p, p.cmd.Start()
	})
	return b
}

// local is the environment for what only reads.
func local() []string {
	return []string{"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1"}
}

// line returns the line that a command of Git prints, empty with missing where
// it says by 1 that there is nothing to print.
func (b *batch) line(missing error, args ...string) (string, error) {
	out, err := b.git.run(context.Background(), local(), nil, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = missing
	}
	return strings.TrimSpace(string(out)), err
}

func (b *batch) commit(name string) (commit, error) {
	hash, err := b.line(plumbing.ErrReferenceNotFound, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return commit{}, err
	}
	text, err := b.line(nil, "log", "--no-walk", "--no-show-signature", "--format=%T %cI %P", hash)
	if err != nil {
		return commit{}, err
	}
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return commit{}, fmt.Errorf("git log: %q", text)
	}
	at, err := time.Parse(time.RFC3339, fields[1])
	return commit{hash, fields[0], at, fields[2:]}, err
}

func (b *batch) base(x, y string) (string, error) {
	return b.line(nil, "merge-base", x, y)
}

func (b *batch) references(names ...plumbing.ReferenceName) (map[plumbing.ReferenceName]plumbing.ReferenceName, error) {
	args := []string{"for-each-ref", "--format=%(refname) %(symref)"}
	for _, name := range names {
		args = append(args, string(name))
	}
	text, err := b.line(nil, args...)
	out := map[plumbing.ReferenceName]plumbing.ReferenceName{}
	for line := range strings.Lines(text) {
		name, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[plumbing.ReferenceName(name)] = plumbing.ReferenceName(target)
	}
	return out, err
}

func (b *batch) size(hash string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, size, err := b.ask("info", "blob", hash)
	return size, err
}

func (b *batch) blob(hash string, size int64) ([]byte, error) {
	return b.contents("blob", hash, size)
}

func (b *batch) tree(hash string) ([]entry, error) {
	data, err := b.contents("tree", hash, maxFile)
	var out []entry
	for width := len(hash) / 2; err == nil && len(data) > 0; {
		head, rest, _ := bytes.Cut(data, []byte{0})
		mode, name, ok := strings.Cut(string(head), " ")
		if !ok || len(rest) < width {
			return nil, fmt.Errorf("tree %s is broken", short(hash))
		}
		e := entry{name: name, hash: hex.EncodeToString(rest[:width])}
		e.mode, err = filemode.New(mode)
		out, data = append(out, e), rest[width:]
	}
	return out, err
}

// contents returns an object of a kind that has at most so many bytes.
func (b *batch) contents(kind, hash string, most int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, size, err := b.ask("info", kind, hash)
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, fmt.Errorf("%d bytes, more than the %d that are read", size, most)
	}
	p, size, err := b.ask("contents", kind, hash)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size+1) // a line break follows
	_, err = io.ReadFull(p.out, data)
	return data[:size], err
}

// ask puts a question about an object, and returns how many bytes it has.
func (b *batch) ask(what, kind, hash string) (*pipe, int64, error) {
	p, err := b.start()
	if err != nil {
		return nil, 0, err
	}
	var is string
	var size int64
	if _, err = fmt.Fprintln(p.in, what, hash); err == nil {
		var line string
		if line, err = p.out.ReadString('\n'); strings.HasSuffix(line, " missing\n") {
			return nil, 0, plumbing.ErrObjectNotFound
		}
		if err == nil {
			_, err = fmt.Sscan(line, new(string), &is, &size)
		}
	}
	if err != nil {
		return nil, 0, &redactedError{fmt.Errorf("git cat-file: %w: %s", errors.Join(err, p.cmd.Wait()), bytes.TrimSpace(p.talk.Bytes()))}
	}
	if is != kind {
		return nil, 0, fmt.Errorf("%s is a %s, not a %s", short(hash), is, kind)
	}
	return p, size, nil
}
