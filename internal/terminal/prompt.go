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

	"github.com/quayside/quayside/internal/inert"
)

// Prompt asks who sits at the terminal.
type Prompt struct {
	in    io.Reader
	lines *bufio.Reader // of in, once something was asked
	talk  *Talk
}

// NewPrompt returns a prompt that asks by talk and reads the answers from in.
func NewPrompt(in io.Reader, talk *Talk) *Prompt { return &Prompt{in: in, talk: talk} }

// Can reports whether somebody can be asked.
func (p *Prompt) Can() bool {
	f, ok := p.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && p.talk.TTY
}

// Line asks for a line, and returns it without the spaces around it. It waits for
// one, or for ctx to end. Where the input ends the line is empty.
func (p *Prompt) Line(ctx context.Context, question string) (string, error) {
	if p.lines == nil {
		p.lines = bufio.NewReader(p.in)
	}
	p.talk.Done()
	fmt.Fprint(p.talk, inert.Line(question)+" ")
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

// Confirm asks whether to do something; no is what counts without a word.
func (p *Prompt) Confirm(ctx context.Context, question string) (bool, error) {
	line, err := p.Line(ctx, question+" [y/N]")
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// Choose asks for one of several options, by number or by name; without a word it
// is the first. It asks again where the answer is none of them, but not for ever.
func (p *Prompt) Choose(ctx context.Context, question string, options []string) (string, error) {
	p.talk.Say("%s", inert.Line(question)+":")
	for i, option := range options {
		p.talk.Say("%s", inert.Line(fmt.Sprintf("  %d) %s", i+1, option)))
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
	return "", fmt.Errorf("%s: want one of %s", question, strings.Join(options, ", "))
}
