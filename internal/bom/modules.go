package bom

import (
	"encoding/base64"
	"encoding/hex"
	"runtime/debug"
	"strings"
)

// Library is a Go module that a program is linked from.
const Library = "library"

// Modules returns the bill of materials of a Go program: of the modules that the go
// command noted in it, by path, with the toolchain's standard library. A module's
// hash is the one of its files that go.sum has.
func Modules(info *debug.BuildInfo) (*Document, error) {
	d := document(module(Operator, info.Main))
	version := strings.TrimPrefix(info.GoVersion, "go")
	d.Components = append(d.Components, Component{Type: Library, Ref: "std", Name: "std", Version: version, Purl: "pkg:golang/std@" + version})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, module(Library, *m))
	}
	uses := map[string][]string{}
	for _, c := range d.Components {
		uses[d.Metadata.Component.Ref] = append(uses[d.Metadata.Component.Ref], c.Ref)
	}
	d.Dependencies = dependencies(d, uses)
	return d, d.number()
}

func module(kind string, m debug.Module) Component {
	purl := "pkg:golang/" + strings.ToLower(m.Path) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := Component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, Purl: purl}
	if text, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // golang.org/x/mod/sumdb/dirhash: of the list of its files' sums
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
	}
	return c
}
