package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/inert"
)

// prompt asks for a line, and returns it without the spaces around it. It waits for
// one, or for ctx to end. Where the input ends the line is empty.
func (a *app) prompt(ctx context.Context, question string) (string, error) {
	if a.lines == nil {
		a.lines = bufio.NewReader(a.stdin)
	}
	a.talk.Done()
	fmt.Fprint(a.talk, inert.Line(question)+" ")
	answer := make(chan string, 1)
	go func() {
		line, _ := a.lines.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case line := <-answer:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// confirm asks whether to do something; no is what counts without a word.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	line, err := a.prompt(ctx, question+" [y/N]")
	line = strings.ToLower(line)
	return line == "y" || line == "yes", err
}

// choose asks for one of several options, by number or by name; without a word it
// is the first. It asks again where the answer is none of them, but not for ever.
func (a *app) choose(ctx context.Context, question string, options []string) (string, error) {
	a.talk.say("%s", inert.Line(question)+":")
	for i, option := range options {
		a.talk.say("%s", inert.Line(fmt.Sprintf("  %d) %s", i+1, option)))
	}
	for range 3 {
		line, err := a.prompt(ctx, "number or name [1]:")
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
