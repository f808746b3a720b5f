// Package manual generates the manual pages of the program from its command tree. The
// released program does not link it: cmd/release generates the pages.
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
	"github.com/quayside/quayside/cmd/quayside/parts"
)

// Pages returns one roff page for the program and one for each command listed by help.
// The keys are paths in the layout of man: "man1/quayside-catalog-show.1". The header
// contains the version and the month and year of made; the pages depend on no other
// time or place.
func Pages(version string, made time.Time) (map[string][]byte, error) {
	pages := map[string][]byte{}
	made = made.UTC()
	for _, cmd := range listCommands(cli.Commands(parts.All())) {
		cmd.DisableAutoGenTag = true
		var page bytes.Buffer
		err := doc.GenMan(asMarkdown(cmd), &doc.GenManHeader{Section: "1", Date: &made, Source: "quayside " + version, Manual: "quayside manual"}, &page)
		if err != nil {
			return nil, fmt.Errorf("writing the page of %q: %w", cmd.CommandPath(), err)
		}
		pages["man1/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"] = toASCII(page.Bytes())
	}
	return pages, nil
}

// listCommands returns cmd and all its available subcommands, parents first.
func listCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, listCommands(c)...)
		}
	}
	return all
}

// asMarkdown escapes the plain texts of cmd, because cobra parses them as Markdown. It
// changes cmd and returns it.
func asMarkdown(cmd *cobra.Command) *cobra.Command {
	name, args, _ := strings.Cut(cmd.Use, " ")
	cmd.Use = strings.TrimSpace(name + " " + escapeRoff(args))
	var blocks []string
	for block := range strings.SplitSeq(cmd.Long, "\n\n") {
		if strings.HasPrefix(block, " ") || strings.Contains(block, "\n ") {
			blocks = append(blocks, "```\n"+block+"\n```") // keep the layout
		} else {
			blocks = append(blocks, escapeRoff(block))
		}
	}
	cmd.Short, cmd.Long = escapeRoff(cmd.Short), strings.Join(blocks, "\n\n")
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Annotations[escapedKey] == nil {
				value, usage := pflag.UnquoteUsage(f)
				if strings.Contains(value, "|") { // the allowed values, missing elsewhere on the page
					usage += " (" + value + ")"
				}
				f.Usage, f.Annotations = escapeRoff(usage), map[string][]string{escapedKey: {}}
			}
		})
	}
	return cmd
}

// escapedKey marks a flag with an escaped text: commands share inherited flags.
const escapedKey = "quayside-manual"

// toASCII replaces non-ASCII characters with roff escapes, supported by every roff reader.
func toASCII(page []byte) []byte {
	return regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAllFunc(page, func(s []byte) []byte {
		r, _ := utf8.DecodeRune(s)
		return fmt.Appendf(nil, `\[u%04X]`, r)
	})
}

// escapeRoff escapes all characters of text with a meaning in Markdown.
func escapeRoff(text string) string {
	return regexp.MustCompile("[\\\\`*_{}\\[\\]()#!|&<>~]|(?m:^[-+:]|^[0-9]+[.])").ReplaceAllStringFunc(text, func(s string) string {
		return s[:len(s)-1] + `\` + s[len(s)-1:]
	})
}
