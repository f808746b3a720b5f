// Package binaries builds the servers for tests into a cache directory, each server once, and finds them there
// later.
//
// The name of a cache entry contains a digest of all inputs that affect its bytes: the Go version, the
// platform, the module's requirements, the build flags, and the linked sources of this module. So an entry is
// never out of date and never rebuilt. The package downloads only Go modules.
//
// Start from [Targets], [Find] and [Build].
package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// ErrNotBuilt is returned if the cache does not contain the target.
var ErrNotBuilt = errors.New("not built")

// Target is one program that can be built.
type Target struct {
	Name    string // "control-plane", unique among the targets
	Program string // file name of the executable: "testcluster"
	Package string // "./cmd/testcluster", or an import path

	module  string   // directory of the module that it is built in, below this one: "."
	version string   // module whose version the program reports as its own; "" for none
	setters []string // linker variables that take the version: "…/version.gitVersion"
	assets  []asset  // files of other modules that the tests need in addition to the program
}

// asset is a directory of a module that is copied into the cache entry.
type asset struct{ module, dir, as string }

// Targets returns all targets, in the recommended order of building: the control plane first.
func Targets() []Target {
	return []Target{
		{
			Name:    "control-plane",
			Program: "testcluster",
			Package: "./cmd/testcluster",
			module:  ".",
			version: "k8s.io/kubernetes",
			setters: []string{"k8s.io/component-base/version.gitVersion"},
		},
		{Name: "argo", Program: "argosync", Package: "./cmd/argosync", module: "."},
		fluxController("kustomize-controller", "."),
		fluxController("source-controller", "fluxsource"), // needs older modules than the other targets
		{
			Name: "argocd", Program: "argocd", Package: ".", module: "argocd", // needs older modules than the other targets
			assets: []asset{{module: "github.com/argoproj/argo-cd/v3", dir: "manifests/crds", as: "crds"}},
		},
		{Name: "argocd-plugins", Program: "plugins", Package: "./plugins", module: "argocd"},
		{
			Name: "gitea", Program: "gitea", Package: ".", module: "gitea", // its go.mod has replacements
			assets: []asset{
				{module: "code.gitea.io/gitea", dir: "options", as: "static/options"},
				{module: "code.gitea.io/gitea", dir: "templates", as: "static/templates"},
				{module: "code.gitea.io/gitea", dir: "public", as: "static/public"},
			},
		},
	}
}

// fluxController returns one of Flux's programs, with its CRDs in crds/.
func fluxController(name, module string) Target {
	path := "github.com/fluxcd/" + name
	return Target{
		Name: name, Program: name, Package: path, module: module,
		assets: []asset{{module: path, dir: "config/crd/bases", as: "crds"}},
	}
}

// Lookup returns the target of that name.
func Lookup(name string) (Target, error) {
	i := slices.IndexFunc(Targets(), func(t Target) bool { return t.Name == name })
	if i < 0 {
		return Target{}, fmt.Errorf("no target %q", name)
	}
	return Targets()[i], nil
}

// Find returns the directory of the named target, built from the current sources of the module that contains
// the working directory. The error is [ErrNotBuilt] if the cache does not contain this build.
func Find(name string) (string, error) {
	t, err := Lookup(name)
	if err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := t.entry(root)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, t.Program)); err != nil {
		return "", fmt.Errorf("%s: %w", t.Name, ErrNotBuilt)
	}
	return dir, nil
}

// Root returns the directory of this module: the nearest parent of the working directory that contains the
// module's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/quayside/quayside/test/cluster\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside the module test/cluster", start)
		}
	}
}

// entry returns the cache directory of the target's files, which may not exist.
func (t Target) entry(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key, err := t.key(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "quayside-test", t.Name+"-"+key), nil
}

// key returns a digest of the target's inputs: 16 hexadecimal digits.
func (t Target) key(root string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s/%s %+v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, t)
	files := []string{filepath.Join(root, t.module, "go.mod"), filepath.Join(root, t.module, "go.sum")}
	if strings.HasPrefix(t.Package, ".") {
		sources, err := filepath.Glob(filepath.Join(root, t.module, t.Package, "*.go"))
		if err != nil {
			return "", err
		}
		files = append(files, sources...)
	}
	for _, file := range files {
		if err := hashFile(h, file); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// hashFile writes the file's base name, its length and its bytes.
func hashFile(h io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a source of the test servers is missing: %w", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%s %d\n", filepath.Base(file), len(text))
	_, err = h.Write(text)
	return err
}
