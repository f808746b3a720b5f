package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/gobuild"
)

const (
	program  = "quayside"
	sumsName = "SHA256SUMS"
)

func releasePlatforms() []string {
	return []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}
}

// accompanyingFiles returns the source files that every archive contains.
func accompanyingFiles() []string { return []string{"LICENSE", "README.md"} }

type options struct {
	dir, url       string
	snapshot       bool
	signKey        string // file of the private key; empty: no signature
	stdout, stderr io.Writer
	getenv         func(string) string
}

// build is the program for one platform.
type build struct {
	platform string
	program  []byte
	info     *debug.BuildInfo
}

// run builds all files of a release, then replaces the directory.
func (o options) run(ctx context.Context) error {
	if err := filetree.CheckReplaceable(filetree.OpenUserDir(o.dir).FS(), sumsName, "a release"); err != nil {
		return fmt.Errorf("%q: %w", o.dir, err)
	}
	key, err := o.signer()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", program)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var builds []build
	for _, p := range releasePlatforms() {
		fmt.Fprintf(o.stderr, "compiling for %s\n", p)
		b, err := o.compile(ctx, p, tmp)
		if err != nil {
			return err
		}
		builds = append(builds, b)
	}
	extra := map[string][]byte{}
	for _, name := range accompanyingFiles() {
		if extra[name], err = os.ReadFile(name); err != nil {
			return err
		}
	}
	files, err := buildRelease(builds, extra, o.url, o.snapshot)
	if err != nil {
		return err
	}
	if err := signFiles(ctx, files, key); err != nil {
		return err
	}
	if err := os.RemoveAll(o.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := filetree.WriteFile(filepath.Join(o.dir, name), files[name]); err != nil {
			return err
		}
		fmt.Fprintf(o.stdout, "%s  %9d  %s\n", sum(files[name]), len(files[name]), name)
	}
	return nil
}

func (o options) compile(ctx context.Context, platform, tmp string) (build, error) {
	data, err := gobuild.Compile(ctx, gobuild.Quayside(platform, filepath.Join(tmp, program), o.stderr))
	if err != nil {
		return build{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	return build{platform, data, info}, err
}

// buildRelease returns the files of a release by name. They do not depend on the current time or
// the machine. All builds must be from the same commit.
func buildRelease(builds []build, extra map[string][]byte, url string, snapshot bool) (map[string][]byte, error) {
	first := builds[0].info
	commit, err := gobuild.CommitOf(first, snapshot)
	if err != nil {
		return nil, err
	}
	version := commit.Version
	pages, err := manualPages(version, commit.Time)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	sums := map[string]string{} // checksums of the archives by platform
	for _, b := range builds {
		name, data, err := buildArchive(b, version, commit.Time, withPages(b.platform, extra, pages))
		if err != nil {
			return nil, err
		}
		files[name], sums[b.platform] = data, sum(data)
	}
	baseURL := strings.TrimSuffix(url, "/") + "/v" + version + "/"
	files["quayside.rb"] = homebrewFormula(version, baseURL, sums)
	files["krew.yaml"] = krewManifest(version, baseURL, sums)
	bom, err := inventory.NewModuleBOM(first)
	if err == nil {
		files[program+"_"+version+"_sbom.cdx.json"], err = bom.Text()
	}
	if err != nil {
		return nil, err
	}
	var list bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&list, "%s  %s\n", sum(files[name]), name)
	}
	files[sumsName] = list.Bytes()
	return files, nil
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// archiveName returns the name of a platform's archive.
func archiveName(version, platform string) string {
	ending := ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		ending = ".zip"
	}
	return program + "_" + version + "_" + strings.ReplaceAll(platform, "/", "_") + ending
}

// entry is a file in an archive.
type entry struct {
	name string
	data []byte
	mode int64
}

// withPages returns the files besides the program in a platform's archive. Except for Windows,
// it adds the manual pages: "man/man1/quayside.1".
func withPages(platform string, extra, pages map[string][]byte) map[string][]byte {
	if strings.HasPrefix(platform, "windows/") {
		return extra
	}
	out := map[string][]byte{}
	maps.Copy(out, extra)
	for name, page := range pages {
		out["man/"+name] = page
	}
	return out
}

// archiveEntries returns the sorted entries of an archive.
func archiveEntries(b build, extra map[string][]byte) []entry {
	name := program
	if strings.HasPrefix(b.platform, "windows/") {
		name += ".exe"
	}
	out := []entry{{name, b.program, 0o755}}
	for path, data := range extra {
		out = append(out, entry{path, data, 0o644})
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return out
}
