package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
)

// writeManual writes the manual pages into a directory. date is the time of the commit, in RFC
// 3339 format.
func writeManual(dir, version, date string) error {
	committed, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	pages, err := manualPages(strings.TrimPrefix(version, "v"), committed)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "man1"), 0o755); err != nil {
		return err
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manualPages returns one page in roff for the program, and one for each command that its help lists. The keys
// are paths, such as "man1/quayside-catalog-show.1". The page header contains the version, and the month and
// year of date. The same arguments result in the same bytes.
func manualPages(version string, date time.Time) (map[string][]byte, error) {
	pages := map[string][]byte{}
	date = date.UTC()
	for _, cmd := range listCommands(cli.Commands(parts.All())) {
		cmd.DisableAutoGenTag = true
		var page bytes.Buffer
		err := doc.GenMan(escapeTexts(cmd), &doc.GenManHeader{Section: "1", Date: &date, Source: "quayside " + version, Manual: "quayside manual"}, &page)
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

// escapeTexts escapes the help texts of cmd in place, and returns cmd. The texts are plain text, but cobra
// parses them as Markdown.
func escapeTexts(cmd *cobra.Command) *cobra.Command {
	name, args, _ := strings.Cut(cmd.Use, " ")
	cmd.Use = strings.TrimSpace(name + " " + escapeMarkdown(args))
	var blocks []string
	for block := range strings.SplitSeq(cmd.Long, "\n\n") {
		if strings.HasPrefix(block, " ") || strings.Contains(block, "\n ") {
			blocks = append(blocks, "```\n"+block+"\n```") // preformatted
		} else {
			blocks = append(blocks, escapeMarkdown(block))
		}
	}
	cmd.Short, cmd.Long = escapeMarkdown(cmd.Short), strings.Join(blocks, "\n\n")
	for _, flags := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Annotations[escapedKey] == nil {
				value, usage := pflag.UnquoteUsage(f)
				if strings.Contains(value, "|") { // the manual page lists the permitted values only here
					usage += " (" + value + ")"
				}
				f.Usage, f.Annotations = escapeMarkdown(usage), map[string][]string{escapedKey: {}}
			}
		})
	}
	return cmd
}

// escapedKey is an annotation of flags whose text is already escaped. An inherited flag, which
// several commands share, would otherwise be escaped again.
const escapedKey = "quayside-manual"

// toASCII replaces non-ASCII characters with roff escapes, which every roff program supports.
func toASCII(page []byte) []byte {
	return regexp.MustCompile(`[^\x00-\x7f]`).ReplaceAllFunc(page, func(s []byte) []byte {
		r, _ := utf8.DecodeRune(s)
		return fmt.Appendf(nil, `\[u%04X]`, r)
	})
}

// escapeMarkdown escapes the characters in text that have a meaning in Markdown.
func escapeMarkdown(text string) string {
	return regexp.MustCompile("[\\\\`*_{}\\[\\]()#!|&<>~]|(?m:^[-+:]|^[0-9]+[.])").ReplaceAllStringFunc(text, func(s string) string {
		return s[:len(s)-1] + `\` + s[len(s)-1:]
	})
}
