package inventory

import (
	"encoding/base64"
	"encoding/hex"
	"runtime/debug"
	"strings"
)

// BOMLibrary is the component type of a Go module linked into a program.
const BOMLibrary = "library"

// NewModuleBOM returns the bill of materials of a Go program: the standard library, then the
// modules in the order of its build info. The hash of a module is its h1 hash in go.sum.
func NewModuleBOM(info *debug.BuildInfo) (*BOM, error) {
	d := newBOM(moduleComponent(BOMOperator, info.Main))
	version := strings.TrimPrefix(info.GoVersion, "go")
	d.Components = append(d.Components, BOMComponent{Type: BOMLibrary, Ref: "std", Name: "std", Version: version, Purl: "pkg:golang/std@" + version})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, moduleComponent(BOMLibrary, *m))
	}
	uses := map[string][]string{}
	for _, c := range d.Components {
		uses[d.Metadata.Component.Ref] = append(uses[d.Metadata.Component.Ref], c.Ref)
	}
	d.Dependencies = listBOMDependencies(d, uses)
	return d, d.setSerialNumber()
}

func moduleComponent(kind string, m debug.Module) BOMComponent {
	purl := "pkg:golang/" + strings.ToLower(m.Path) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := BOMComponent{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, Purl: purl}
	if text, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // golang.org/x/mod/sumdb/dirhash: SHA-256 of the list of file hashes
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
			c.Hashes = []bomHash{{"SHA-256", hex.EncodeToString(sum)}}
		}
	}
	return c
}
