package declare

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/overlay"
)

// addUnbuilt adds the faults of a kustomization that cannot be built. o is the opened part of the
// kustomization, or nil. If no path names the kustomization, and if it certainly contains no declarations,
// addUnbuilt only adds a warning.
func (l *loader) addUnbuilt(o *overlay.Overlay, d candidate, err error) {
	about := Unread{partial: true, text: l.ownText(o, d.path, err)}
	tolerated := !d.named && o != nil && !namesOLM(about.text) && !mayGenerate(o) && !errors.Is(err, overlay.ErrOutside)
	for _, u := range unreadAll(l.pos(d.path), diag.MapPositions(err, l.displayPos), about) {
		switch {
		case tolerated:
			u.Tolerated = true
			l.warnings = append(l.warnings, diag.Warning{Pos: u.Pos, Code: "not-built", Msg: "kustomization without declarations is ignored: " + u.Reason})
		case !d.named && u.Hint == "":
			u.err = diag.Hintf(u.Pos, "if "+l.displayPath(d.path)+" contains no declarations, list only the directories with declarations in spec.declarations", "%w", &diag.Error{Msg: u.err.Msg, Err: u.err.Err})
			u.Hint = u.err.Hint
		}
		u.Build = l.displayPath(d.path)
		l.addParts(d.entry, []Unread{u})
	}
}

// mayGenerate reports whether a build of o may contain declarations that are not in its files: from
// a generator, or from a remote directory whose name suggests an operator.
func mayGenerate(o *overlay.Overlay) bool {
	for k := range o.Kustomizations() {
		if slices.ContainsFunc(k.Skipped, func(p overlay.Plugin) bool { return !isSecretPlugin(p) }) {
			return true
		}
		if slices.ContainsFunc(k.Remote, func(name string) bool {
			name = strings.ToLower(name)
			return strings.Contains(name, "operator") || strings.Contains(name, "subscription") || strings.Contains(name, "olm")
		}) {
			return true
		}
	}
	return false
}

// isSecretPlugin reports whether a plugin decrypts Secrets.
func isSecretPlugin(p overlay.Plugin) bool {
	name := strings.ToLower(p.Kind)
	return strings.Contains(name, "sops") || strings.Contains(name, "secret") || strings.Contains(name, "vault")
}

// ownText returns the text of all files that may belong to the kustomization in dir: the files below its directory and
// the directories of the kustomizations that it includes, and all files to which these kustomizations refer. It omits
// the files of other kustomizations. o is the opened kustomization, or nil. If err is not nil, a kustomization counts
// as included if the text of another kustomization mentions its directory.
func (l *loader) ownText(o *overlay.Overlay, dir string, err error) []byte {
	var out bytes.Buffer
	dirs := map[string]bool{dir: true}
	seen := map[string]bool{}
	add := func(name string, data []byte) {
		if !seen[name] {
			seen[name] = true
			out.Write(data)
			out.WriteString("\n---\n")
		}
	}
	if o != nil {
		for k := range o.Kustomizations() {
			dirs[k.Dir] = true
			for _, name := range k.Files() {
				add(name, k.Data(name))
			}
		}
	}
	if err != nil {
		l.addMentioned(dir, dirs)
		for _, included := range slices.Sorted(maps.Keys(dirs)) {
			l.addMentioned(included, dirs)
		}
	}
	for dir := range dirs {
		// Ignore errors: the search for declarations reports unreadable files.
		_ = fs.WalkDir(l.fsys, dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir() && p != dir && (strings.HasPrefix(d.Name(), ".") || !dirs[p] && Kustomization(l.fsys, p) != ""):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			if data, err := l.read(p); err == nil {
				add(p, data)
			}
			return nil
		})
	}
	return out.Bytes()
}

// addMentioned adds the directories that the kustomization in dir mentions, directly or indirectly.
func (l *loader) addMentioned(dir string, dirs map[string]bool) {
	for _, name := range l.mentionedDirs(dir) {
		if !dirs[name] {
			dirs[name] = true
			l.addMentioned(name, dirs)
		}
	}
}

// mentionedDirs returns the directories that have a kustomization and whose names occur in the unreadable
// kustomization in dir.
func (l *loader) mentionedDirs(dir string) []string {
	data, err := l.read(Kustomization(l.fsys, dir))
	if err != nil {
		return nil
	}
	var out []string
	for word := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return strings.ContainsRune("\"'[]{},:\n\r\t ", r) }) {
		if named := path.Join(dir, word); fs.ValidPath(named) && Kustomization(l.fsys, named) != "" {
			out = append(out, named)
		}
	}
	return out
}

// addSkipped adds a warning for each plugin that the build of o skips. It adds a fault instead if a path names
// o, o contains no declarations, and the plugin may generate declarations.
func (l *loader) addSkipped(o *overlay.Overlay, d candidate, declares bool) {
	for k := range o.Kustomizations() {
		for _, p := range k.Skipped {
			pos := l.displayPos(p.Pos)
			reason, hint := l.explainSkipped(p)
			u := newUnread(diag.Hintf(pos, hint, "%s", reason))
			u.partial = !isSecretPlugin(p) && !p.Transforms
			if u.Tolerated = !d.named || declares || !u.partial; u.Tolerated {
				l.warnings = append(l.warnings, diag.Warning{Pos: pos, Code: "plugin-skipped", Msg: reason})
			}
			l.addParts(d.entry, []Unread{u})
		}
	}
}

// explainSkipped returns the reason why a build skips a plugin, and a hint.
func (l *loader) explainSkipped(p overlay.Plugin) (reason, hint string) {
	hint = p.Hint()
	switch {
	case p.Err != nil:
		return fmt.Sprintf("%s is skipped, because its output is unknown: %v", p, p.Err), hint
	case p.Transforms:
		return p.String() + " is skipped, because it runs a program: its changes are unknown", hint
	case p.Dir != "":
		dir := l.displayPath(p.Dir)
		return fmt.Sprintf("%s in %q is skipped, because kustomizations are built without Helm charts: its output is unknown", p, dir),
			fmt.Sprintf("list %s in spec.declarations, with the values of the kustomization, or %s", dir, hint)
	case p.Repo != "":
		return fmt.Sprintf("%s of %s is skipped, because it is not in the repository: its output is unknown", p, p.Repo), hint
	case p.Renders():
		return p.String() + " is skipped, because Helm charts are not rendered: its output is unknown", hint
	default:
		return p.String() + " is skipped, because it runs a program: its output is unknown", hint
	}
}
