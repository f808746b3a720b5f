package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build returns the directory of the target, and builds the target first if it is not in the cache. The output
// of the go command is written to log. A cache entry appears complete or not at all. If two builders run
// concurrently, the result of the first is kept.
func Build(ctx context.Context, t Target, log io.Writer) (string, error) {
	if dir, err := Find(t.Name); !errors.Is(err, ErrNotBuilt) {
		return dir, err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := t.entry(root)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	b := builder{dir: filepath.Join(root, t.module), log: log}
	if err := b.into(ctx, tmp, t); err != nil {
		return "", fmt.Errorf("building %s: %w", t.Name, err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, found := Find(t.Name); found == nil {
			return dir, nil
		}
		return "", err
	}
	return dir, nil
}

// builder runs the go command in one module.
type builder struct {
	dir string
	log io.Writer
}

// into builds the target's program and copies its assets into dir.
func (b builder) into(ctx context.Context, dir string, t Target) error {
	flags := "-s -w"
	if t.version != "" {
		version, err := b.output(ctx, "list", "-m", "-f", "{{.Version}}", t.version)
		if err != nil {
			return err
		}
		for _, variable := range t.setters {
			flags += " -X " + variable + "=" + version
		}
	}
	program := filepath.Join(dir, t.Program)
	if _, err := b.output(ctx, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", program, t.Package); err != nil {
		return err
	}
	for _, a := range t.assets {
		from, err := b.output(ctx, "list", "-m", "-f", "{{.Dir}}", a.module)
		if err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(dir, a.as), os.DirFS(filepath.Join(from, a.dir))); err != nil {
			return fmt.Errorf("copying files of %s: %w", a.module, err)
		}
	}
	return nil
}

// output runs the go command and returns its line of output. The servers are linked without C, so
// that the entry runs on every machine of the platform.
func (b builder) output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, &out, b.log
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}
