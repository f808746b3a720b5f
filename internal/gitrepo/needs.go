package gitrepo

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// commitNeeds returns what is set up for commits that go-git does not heed,
// sorted; none where it makes the commit that Git would.
func (r *Repo) commitNeeds(parent *Revision, changes []Change) ([]string, error) {
	set, err := r.settings()
	if err != nil {
		return nil, err
	}
	out := r.hooks(set, "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction")
	for _, key := range []string{"commit.gpgsign", "core.autocrlf", "core.sparsecheckout", "core.sharedrepository", "core.attributesfile"} {
		if set.on(key) {
			out = append(out, key)
		}
	}
	if data, err := os.ReadFile(filepath.Join(r.common, "info", "attributes")); err == nil && converts(data) {
		out = append(out, "info/attributes")
	}
	for _, name := range attributeFiles(changes) {
		if data, err := parent.Read(name); err == nil && converts(data) {
			out = append(out, name)
		}
	}
	return append(out, set.includes()...), nil
}

// pushNeeds is commitNeeds for a push to a URL.
func (r *Repo) pushNeeds(to string) ([]string, error) {
	set, err := r.settings()
	if err != nil {
		return nil, err
	}
	out := append(r.hooks(set, "pre-push", "reference-transaction"), set.includes()...)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if concerns(key, set[key], to) {
			out = append(out, withoutURL(key))
		}
	}
	return slices.Compact(out), nil
}

// needsLFS reports whether files of a branch are kept outside of Git.
func (r *Repo) needsLFS(branch string) (bool, error) {
	set, err := r.settings()
	if err != nil || set["filter.lfs.clean"]+set["filter.lfs.process"] == "" {
		return false, err
	}
	tip, err := r.Revision("refs/heads/" + branch)
	if err != nil {
		return false, err
	}
	files, err := tip.List(".")
	for _, e := range files {
		if path.Base(e.Path) != ".gitattributes" {
			continue
		}
		data, err := tip.ReadEntry(e)
		if err != nil || strings.Contains(string(data), "filter=lfs") {
			return err == nil, err
		}
	}
	return false, err
}

// concerns reports whether a setting says how one connects to a URL.
func concerns(key, value, to string) bool {
	section, rest, _ := strings.Cut(key, ".")
	last := strings.LastIndex(rest, ".")
	switch {
	case key == "core.sshcommand":
		return true
	case section == "url":
		return strings.HasPrefix(to, value)
	case section != "credential" && section != "http":
		return false
	case last < 0:
		return true
	}
	_, rest, _ = strings.Cut(rest[:last], "://")
	host, _, _ := strings.Cut(rest, "/")
	return strings.Contains(host, "*") || strings.Contains(to, host)
}

// withoutURL leaves out of a key what may be a URL with credentials.
func withoutURL(key string) string {
	first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
	return key[:first] + key[last:]
}

// hooks returns those of the hooks that are set up.
func (r *Repo) hooks(set settings, names ...string) []string {
	if set["core.hookspath"] != "" {
		return []string{"core.hookspath"}
	}
	var out []string
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(r.common, "hooks", name)); err == nil {
			out = append(out, "the hook "+name)
		}
	}
	return out
}

// includes returns the settings that lead to files that are not read.
func (s settings) includes() []string {
	var out []string
	for key := range s {
		if strings.HasPrefix(key, "include.") || strings.HasPrefix(key, "includeif.") {
			out = append(out, withoutURL(key))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// attributeFiles returns where attributes of files may stand, sorted.
func attributeFiles(changes []Change) []string {
	seen := map[string]bool{}
	for _, c := range changes {
		for dir := path.Dir(c.Path); !seen[path.Join(dir, ".gitattributes")]; dir = path.Dir(dir) {
			seen[path.Join(dir, ".gitattributes")] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// converts reports whether attributes may have content stored otherwise than it
// is written.
func converts(attributes []byte) bool {
	return slices.ContainsFunc([]string{"filter", "text", "eol", "crlf", "ident", "working-tree-encoding", "[attr]"}, func(word string) bool {
		return strings.Contains(string(attributes), word)
	})
}
