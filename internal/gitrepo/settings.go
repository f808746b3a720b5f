package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
	format "github.com/go-git/go-git/v5/plumbing/format/config"
)

// settings holds what Git is configured to, by section and key in lower case
// with the subsection between them as it is written: "core.autocrlf",
// "url.git@example.com:.insteadof". Of several values it is the last.
type settings map[string]string

// settings reads the configuration of the system, the user, the repository and
// the work tree, without the files that they include. Nobody needs to have a
// home for that.
func (r *Repo) settings() (settings, error) {
	out := settings{}
	for _, scope := range []config.Scope{config.SystemScope, config.GlobalScope} {
		if c, err := config.LoadConfig(scope); err == nil {
			out.add(c.Raw)
		}
	}
	for _, file := range []string{filepath.Join(r.common, "config"), filepath.Join(r.own, "config.worktree")} {
		if filepath.Base(file) != "config" && !out.on("extensions.worktreeconfig") {
			continue
		}
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Git's configuration: %w", err)
		}
		raw := format.New()
		if err := errors.Join(format.NewDecoder(f).Decode(raw), f.Close()); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		out.add(raw)
	}
	return out, nil
}

func (s settings) add(c *format.Config) {
	for _, section := range c.Sections {
		s.put(strings.ToLower(section.Name), section.Options)
		for _, sub := range section.Subsections {
			s.put(strings.ToLower(section.Name)+"."+sub.Name, sub.Options)
		}
	}
}

func (s settings) put(section string, options format.Options) {
	for _, o := range options {
		s[section+"."+strings.ToLower(o.Key)] = o.Value
	}
}

// on reports whether a switch is on. One without a value is.
func (s settings) on(key string) bool {
	value, ok := s[key]
	switch strings.ToLower(value) {
	case "false", "no", "off", "0":
		return false
	}
	return ok
}

// logsBranches reports whether a new branch gets a log.
func (s settings) logsBranches() bool {
	if _, set := s["core.logallrefupdates"]; set {
		return s.on("core.logallrefupdates")
	}
	return !s.on("core.bare")
}
