package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/quayside/quayside/internal/sanitize"
)

// Prompt asks the user questions on the terminal.
type Prompt struct {
	in    io.Reader
	lines *bufio.Reader // reader for in; nil before the first question
	log   *Logger
}

// NewPrompt returns a prompt that prints questions to log and reads the answers from in.
func NewPrompt(in io.Reader, log *Logger) *Prompt { return &Prompt{in: in, log: log} }

// IsInteractive reports whether both input and output are terminals.
func (p *Prompt) IsInteractive() bool {
	f, ok := p.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && p.log.TTY
}

// Line asks for a line and returns it without outer spaces. If ctx ends, Line returns early with an error. If
// the input ends, it returns an empty line.
func (p *Prompt) Line(ctx context.Context, question string) (string, error) {
	if p.lines == nil {
		p.lines = bufio.NewReader(p.in)
	}
	p.log.Done()
	fmt.Fprint(p.log, sanitize.Line(question)+" ")
	answer := make(chan string, 1)
	go func() {
		line, _ := p.lines.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case line := <-answer:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Confirm asks a yes-or-no question. The default is no.
func (p *Prompt) Confirm(ctx context.Context, question string) (bool, error) {
	line, err := p.Line(ctx, question+" [y/N]")
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// Choose asks the user to choose one of several options, by number or by name. The default is the
// first. After three invalid answers, it returns an error.
func (p *Prompt) Choose(ctx context.Context, question string, options []string) (string, error) {
	p.log.Say("%s", sanitize.Line(question)+":")
	for i, option := range options {
		p.log.Say("%s", sanitize.Line(fmt.Sprintf("  %d) %s", i+1, option)))
	}
	for range 3 {
		line, err := p.Line(ctx, "number or name [1]:")
		if err != nil || line == "" {
			return options[0], err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(options) {
			return options[n-1], nil
		}
		if slices.Contains(options, line) {
			return line, nil
		}
	}
	return "", fmt.Errorf("%s: must be one of %s", question, strings.Join(options, ", "))
}
