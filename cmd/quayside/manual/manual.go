// Package manual makes the manual pages of the program from its tree of commands. No
// program of a user's links it: pages are made where a release is, and by make man.
//
// Start from [Pages].
package manual

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/cmd/quayside/cli"
)

// Pages returns a page in roff for each command that help lists, and for the program,
// by its path as man looks for it: "man1/quayside-catalog-show.1". The header has the
// version, and month and year of the time given; nothing else of a page depends on
// when or where it was made.
func Pages(version string, made time.Time) (map[string][]byte, error) {
	pages := map[string][]byte{}
	made = made.UTC()
	for _, cmd := range commands(cli.Commands()) {
		cmd.DisableAutoGenTag = true
		var page bytes.Buffer
		err := doc.GenMan(asMarkdown(cmd), &doc.GenManHeader{Section: "1", Date: &made, Source: "quayside " + version, Manual: "quayside manual"}, &page)
		if err != nil {
			return nil, fmt.Errorf("writing the page of %q: %w", cmd.CommandPath(), err)
		}
		pages["man1/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"] = ascii(page.Bytes())
	}
	return pages, nil
}

// commands returns cmd and all below it that help lists, parents first.
func commands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, commands(c)...)
		}
	}
	return all
}

// asMarkdown changes the texts of a command, which cobra takes for Markdown and which
// are written as they are to be read.
func asMarkdown(cmd *cobra.Command) *cobra.Command {
	name, args, _ := strings.Cut(cmd.Use, " ")
	cmd.Use = strings.TrimSpace(name + " " + escaped(args))
	var blocks []string
	for block := range strings.SplitSeq(cmd.Long, "\n\n") {
		if strings.HasPrefix(block, " ") || strings.Contains(block, "\n ") {
			blocks = append(blocks, "```\n"+block+"\n```") // as it was laid out
		} else {
			blocks = append(blocks, escaped(block))
		}
	}
	cmd.Short, cmd.Long = escaped(cmd.Short), strings.Join(blocks, "\n\n")
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Annotations[told] == nil {
				value, usage := pflag.UnquoteUsage(f)
				if strings.Contains(value, "|") { // what it may be, which nothing else says
					usage += " (" + value + ")"
				}
				f.Usage, f.Annotations = escaped(usage), map[string][]string{told: {}}
			}
		})
	}
	return cmd
}

// told marks a flag whose text was changed: several commands have those of all.
const told = "quayside-manual"

// ascii returns a page in the only characters that every reader of roff takes.
func ascii(page []byte) []byte {
	return regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAllFunc(page, func(s []byte) []byte {
		r, _ := utf8.DecodeRune(s)
		return fmt.Appendf(nil, `\[u%04X]`, r)
	})
}

// escaped returns text with nothing in it that Markdown has a meaning for.
func escaped(text string) string {
	return regexp.MustCompile("[\\\\`*_{}\\[\\]()#!|&<>~]|(?m:^[-+:]|^[0-9]+[.])").ReplaceAllStringFunc(text, func(s string) string {
		return s[:len(s)-1] + `\` + s[len(s)-1:]
	})
}
