package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// faults are the faults of one night, by package.
type faults struct {
	dropped   map[string]bool   // the catalog lacks the package
	renamed   map[string]bool   // the catalog lacks the channel
	installed map[string]string // the catalog lacks this version, which dev has
	empty     map[string]string // this version, the newest, cannot be fetched
	broken    string            // a catalog that cannot be read
	cold      bool              // nothing is cached
}

// drawFaults draws the faults of a night. Most nights have one or none.
func (f *nightFleet) drawFaults() faults {
	out := faults{dropped: map[string]bool{}, renamed: map[string]bool{}, installed: map[string]string{}, empty: map[string]string{}}
	if f.chance(40) {
		return out
	}
	lock := f.lockAt("main", "dev")
	for _, pkg := range f.h.packages {
		entries := f.h.entries(pkg, f.night, "")
		pin, pinned := lock.Pin(f.h.namespaceOf(pkg), pkg)
		switch n := f.rand.IntN(30); {
		case n == 0:
			out.dropped[pkg] = true
		case n == 1:
			out.renamed[pkg] = true
		case n <= 3 && pinned:
			out.installed[pkg] = pin.Version
		case n == 4 && len(entries) > 0:
			if newest := entries[len(entries)-1].version; !pinned || newest != pin.Version {
				out.empty[pkg] = newest
			}
		}
	}
	if f.chance(10) {
		out.broken = []string{"one", "two"}[f.rand.IntN(2)]
	}
	out.cold = f.chance(20)
	return out
}

// offered returns the channel entries that the catalog has for a package on this night, given the night's faults.
func (f *nightFleet) offered(pkg string, with faults) []channelEntry {
	if with.dropped[pkg] || with.renamed[pkg] || with.broken == f.h.catalogOf(pkg) {
		return nil
	}
	return f.h.entries(pkg, f.night, with.installed[pkg])
}

// publish writes the catalogs of this night, with the given faults.
func (f *nightFleet) publish(with faults) {
	if with.cold {
		check(f.t, os.RemoveAll(filepath.Join(f.dir, "cold")))
	}
	for _, pkg := range f.h.packages {
		if f.h.formatOf(pkg) != "bundles" {
			f.publishContent(pkg, with)
			continue
		}
		catalog := f.h.catalogOf(pkg)
		file := filepath.Join(catalog, pkg+".json")
		entries := f.h.entries(pkg, f.night, with.installed[pkg])
		channel := "stable"
		if with.renamed[pkg] {
			channel = "other"
		}
		text := ""
		switch {
		case with.broken == catalog:
			text = "{"
		case with.dropped[pkg] || len(entries) == 0:
		default:
			text = f.h.catalog(pkg, entries, channel, map[string]bool{with.empty[pkg]: true})
		}
		f.publishFile(file, text)
	}
}

// publishContent writes the charts or releases of a package. Charts and releases have no channels, so a night
// whose fault is a missing channel offers none of them.
func (f *nightFleet) publishContent(pkg string, with faults) {
	files := map[string]string{}
	for _, e := range f.offered(pkg, with) {
		maps.Copy(files, f.h.contentFiles(pkg, e.version, with.empty[pkg]))
	}
	for _, x := range f.h.releases[pkg] {
		for file := range f.h.contentFiles(pkg, x.version, "") {
			f.publishFile(file, files[file])
			if files[file] == "" {
				check(f.t, os.RemoveAll(filepath.Join(f.dir, "catalogs", strings.TrimSuffix(filepath.Dir(file), "/templates"))))
			}
		}
	}
}

// publishFile writes a file of a catalog if its text changed, or removes it if text is empty.
func (f *nightFleet) publishFile(file, text string) {
	if f.published[file] == text {
		return
	}
	f.published[file] = text
	name := filepath.Join(f.dir, "catalogs", file)
	if text == "" {
		check(f.t, os.RemoveAll(name))
		return
	}
	check(f.t, os.MkdirAll(filepath.Dir(name), 0o777))
	check(f.t, os.WriteFile(name, []byte(text), 0o666))
}
