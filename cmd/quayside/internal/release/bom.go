package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
)

// component is a Go module in a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Purl    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// writeBOM writes the bill of materials of a Go program to a file.
func writeBOM(program, file string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	text, err := billOfMaterials(info)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// billOfMaterials returns a CycloneDX document that lists the standard library and the modules of a
// program, in the order of its build info. The hash of a module is its "h1:" hash in go.sum.
func billOfMaterials(info *debug.BuildInfo) ([]byte, error) {
	components := []component{newComponent("library", debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, newComponent("library", *m))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.Ref)
	}
	program := newComponent("application", info.Main)
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata":     map[string]any{"component": program},
		"components":   components,
		"dependencies": []map[string]any{{"ref": program.Ref, "dependsOn": refs}},
	}, "", "  ")
	return append(text, '\n'), err
}

func newComponent(kind string, m debug.Module) component {
	purl := "pkg:golang/" + strings.ToLower(m.Path) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, Purl: purl}
	if text, ok := strings.CutPrefix(m.Sum, "h1:"); ok { // see golang.org/x/mod/sumdb/dirhash: SHA-256 over the hashes of the module's files
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
	}
	return c
}
