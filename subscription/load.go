package subscription

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/yamlnode"
)

// LoadOptions says what LoadFS reads.
type LoadOptions struct {
	Paths   []string // files or directories in the file system; empty: all of it
	Output  string   // quayside's own tree: passed over where a directory is walked; empty for none
	Applied []string // directories that the GitOps tool applies: a declaration below one earns a warning
	Prefix  string   // put before each path in positions, so that they read as the user would name the file: "../env/"
}

// Caps on what is read from one workspace.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
)

// LoadFS reads every declaration below the paths: directories are walked, in
// path order, for files that end in .yaml, .yml or .json; what begins with a
// dot is passed over. A path that names a file is read whatever its name. The
// sets of all files are merged as by [Merge]. A path that does not exist is an
// error that wraps fs.ErrNotExist. All faults are found; the error is a
// diag.List.
func LoadFS(fsys fs.FS, opt LoadOptions) (*Set, error) {
	l := loader{fsys: fsys, opt: opt}
	l.find()
	var sets []*Set
	for _, file := range l.files {
		set, first, err := l.read(file)
		l.errs.Add(l.pos(file), err)
		if err != nil {
			continue
		}
		if !first.IsZero() {
			if msg := l.applied(file); msg != "" {
				set.Warnings = append(set.Warnings, diag.Warning{Pos: first, Code: "declaration-in-tree", Msg: msg})
			}
		}
		sets = append(sets, set)
	}
	merged, err := Merge(sets...)
	l.errs.Add(diag.Pos{}, err)
	if err := l.errs.Err(); err != nil {
		return nil, err
	}
	return merged, nil
}

type loader struct {
	fsys  fs.FS
	opt   LoadOptions
	files []string
	bytes int64
	errs  diag.List
}

func (l *loader) pos(file string) diag.Pos { return diag.Pos{File: l.opt.Prefix + file} }

// find lists the files, sorted, each once.
func (l *loader) find() {
	paths := l.opt.Paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, p := range paths {
		p = path.Clean(p)
		if !fs.ValidPath(p) {
			l.errs.Addf(l.pos(p), "not a path inside the workspace")
			continue
		}
		info, err := fs.Stat(l.fsys, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			l.errs.Addf(l.pos(p), "no such file or directory: %w", fs.ErrNotExist)
		case err != nil:
			l.errs.Add(l.pos(p), err)
		case info.IsDir():
			l.walk(p)
		default:
			l.files = append(l.files, p)
		}
	}
	slices.Sort(l.files)
	l.files = slices.Compact(l.files)
}

func (l *loader) walk(root string) {
	err := fs.WalkDir(l.fsys, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			l.errs.Add(l.pos(p), err)
			return nil
		}
		hidden := p != root && strings.HasPrefix(d.Name(), ".")
		switch {
		case d.IsDir() && (hidden || p != root && p == l.opt.Output):
			return fs.SkipDir
		case d.IsDir() || hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(p)):
			return nil
		}
		if info, err := fs.Stat(l.fsys, p); err != nil || !info.Mode().IsRegular() { // follows a link; a dangling one is no declaration
			return nil
		}
		if err := inert.Name(p); err != nil {
			l.errs.Addf(l.pos(p), "file name %w", err)
			return nil
		}
		if l.files = append(l.files, p); len(l.files) > maxFiles {
			return fmt.Errorf("more than the %d files allowed", maxFiles)
		}
		return nil
	})
	l.errs.Add(l.pos(root), err)
}

func (l *loader) read(file string) (*Set, diag.Pos, error) {
	info, err := fs.Stat(l.fsys, file)
	if err != nil {
		return nil, diag.Pos{}, err
	}
	if l.bytes += info.Size(); info.Size() > int64(limits().Bytes) || l.bytes > maxBytes {
		return nil, diag.Pos{}, diag.Errorf(l.pos(file), "%d bytes: more than the %d of one file or the %d of all declarations", info.Size(), limits().Bytes, maxBytes)
	}
	data, err := fs.ReadFile(l.fsys, file)
	if err != nil {
		return nil, diag.Pos{}, err
	}
	return collect(l.opt.Prefix+file, data)
}

// applied says where a file lies below a directory that the GitOps tool applies,
// or is listed as a resource by a kustomization beside or above it: OLM, or the
// API server, would get its declarations as well.
func (l *loader) applied(file string) string {
	for _, dir := range l.opt.Applied {
		if dir = path.Clean(dir); dir == "." || strings.HasPrefix(file, dir+"/") {
			return fmt.Sprintf("this declaration lies in %q, which the GitOps tool applies to the cluster: move it or exclude it there", dir)
		}
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if k := kustomization(l.fsys, dir); k != "" && lists(l.fsys, dir, k, file) {
			return fmt.Sprintf("%q lists this declaration as a resource, so the GitOps tool would apply it to the cluster: take it out there", l.opt.Prefix+k)
		}
		if dir == "." {
			return ""
		}
	}
}

// kustomization returns the path of a directory's kustomization, or "".
func kustomization(fsys fs.FS, dir string) string {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		p := path.Join(dir, name)
		if info, err := fs.Stat(fsys, p); err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
			return p
		}
	}
	return ""
}

// lists reports whether a kustomization names file as a resource, or a
// directory that holds it and has no kustomization to say otherwise.
func lists(fsys fs.FS, dir, kustomizationFile, file string) bool {
	data, err := fs.ReadFile(fsys, kustomizationFile)
	if err != nil {
		return false
	}
	docs, err := yamlnode.Documents(kustomizationFile, data, yamlnode.Limits{Bytes: 1 << 20, Nodes: 50_000})
	if err != nil || len(docs) == 0 {
		return false // kustomize says what is wrong with it
	}
	for _, field := range []string{"resources", "bases"} {
		_, list := yamlnode.Field(docs[0], field)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range list.Content {
			name, _ := yamlnode.Text(item)
			target := path.Join(dir, name)
			if target == file || strings.HasPrefix(file, target+"/") && kustomization(fsys, target) == "" {
				return true
			}
		}
	}
	return false
}
