package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/registry"
)

// argPath returns where a path that was given as an argument lies: relative to
// the directory of -C, else to the current one.
func (a *app) argPath(name string) string {
	name = filepath.FromSlash(name)
	if a.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// argClient returns a client for images whose paths are arguments.
func (a *app) argClient(offline bool) (*registry.Client, error) {
	s, err := a.open()
	if err != nil {
		return nil, err
	}
	c, err := s.client(offline)
	if err != nil {
		return nil, err
	}
	c.Dir = a.dir
	return c, nil
}

// argument is what an argument names: a directory, or an image.
type argument struct {
	text  string // as it was given
	dir   string // where the directory lies; empty for an image
	image string // "oci:dist", "image:quay.io/org/name:v1"
}

// argument tells a directory from an image: what has a scheme is as it says, a
// directory that exists is one, and anything else is an image in a registry.
func (a *app) argument(text string) (argument, error) {
	scheme, rest, ok := strings.Cut(text, ":")
	switch {
	case ok && scheme == "dir":
		return argument{text: text, dir: a.argPath(rest)}, nil
	case ok && slices.Contains([]string{"image", "oci", "oci-archive", "docker-archive"}, scheme):
		return argument{text: text, image: text}, nil
	}
	dir := a.argPath(text)
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return argument{}, fmt.Errorf("%s is not a directory", text)
	case err == nil && isLayout(dir):
		return argument{text: text, image: "oci:" + text}, nil
	case err == nil:
		return argument{text: text, dir: dir}, nil
	}
	if src, err := registry.ParseSource(text); err == nil && strings.Contains(text, "/") && strings.ContainsAny(src.Registry(), ".:") && !strings.HasPrefix(text, ".") {
		return argument{text: text, image: "image:" + text}, nil
	}
	return argument{}, fmt.Errorf("%q is neither a directory that exists nor an image (registry/name:tag, oci:path)", text)
}

func isLayout(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "oci-layout"))
	return err == nil
}

// layoutTarget reads the destination of a build: oci:path or oci:path:tag.
func (a *app) layoutTarget(text string) (dir, tag string, err error) {
	src, err := registry.ParseSource(text)
	if err == nil && (src.Kind != registry.Layout || src.Digest != "") {
		err = fmt.Errorf("%q: want oci:path or oci:path:tag", text)
	}
	return a.argPath(src.Name), src.Tag, err
}

// below puts dir before the files that faults name.
func below(dir string, err error) error {
	return moved(err, func(p diag.Pos) diag.Pos {
		p.File = filepath.ToSlash(filepath.Join(dir, p.File))
		return p
	})
}

// moved returns err with the places of its faults as move gives them.
func moved(err error, move func(diag.Pos) diag.Pos) error {
	var list diag.List
	if !errors.As(err, &list) {
		var one *diag.Error
		if !errors.As(err, &one) {
			return err
		}
		list = diag.List{one}
	}
	out := make(diag.List, len(list))
	for i, e := range list {
		there := *e
		there.Pos = move(there.Pos)
		out[i] = &there
	}
	return out
}

// warningsBelow is below for warnings.
func warningsBelow(dir string, ws []diag.Warning) []diag.Warning {
	out := slices.Clone(ws)
	for i := range out {
		out[i].Pos.File = filepath.ToSlash(filepath.Join(dir, out[i].Pos.File))
	}
	return out
}

// faultList returns the faults that err is made of.
func faultList(err error) diag.List {
	var list diag.List
	if err == nil || errors.As(err, &list) {
		return list
	}
	list.Add(diag.Pos{}, err)
	return list
}
