package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/internal/terminal"
)

// printUnified prints unified diffs of the files.
func printUnified(out *terminal.Terminal, files []compare.FilePair) {
	for _, f := range files {
		from, to := "a/"+f.Path, "b/"+f.Path
		if f.Before == "" {
			from = "/dev/null"
		}
		if f.After == "" {
			to = "/dev/null"
		}
		var b strings.Builder
		for line := range strings.Lines(udiff.Unified(from, to, f.Before, f.After)) {
			body := strings.TrimSuffix(line, "\n")
			switch line[0] {
			case '+':
				body = out.Paint(terminal.Green, body)
			case '-':
				body = out.Paint(terminal.Red, body)
			}
			b.WriteString(body + "\n")
		}
		fmt.Fprint(out, b.String())
	}
}

// runExternalDiff compares files with the program in KUBECTL_EXTERNAL_DIFF, as kubectl diff does.
// It uses no shell, and drops arguments with special characters. Exit code 1 of the program is no
// error: it means that files differ.
func runExternalDiff(ctx context.Context, program string, files []compare.FilePair, stdout, stderr io.Writer) error {
	words := strings.Fields(program)
	plain := regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)
	args := slices.DeleteFunc(words[1:], func(s string) bool { return !plain.MatchString(s) })
	dir, err := os.MkdirTemp("", "quayside-diff-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, f := range files {
		for side, data := range map[string]string{"BEFORE": f.Before, "AFTER": f.After} {
			name := filepath.Join(dir, side, filepath.FromSlash(f.Path))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
			if data == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
				return err
			}
		}
	}
	cmd := exec.CommandContext(ctx, words[0], append(args, filepath.Join(dir, "BEFORE"), filepath.Join(dir, "AFTER"))...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return fmt.Errorf("KUBECTL_EXTERNAL_DIFF: %s: %w", words[0], err)
	}
	return nil
}
