package fbc

import (
	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// placeEntries gives channel entries decoded from n the positions that they
// have there.
func placeEntries(entries []catalog.EntryData, n *yaml.Node, pos diag.Pos, offset int) {
	_, list := yamlnode.Field(n, "entries")
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) != len(entries) {
		return
	}
	for i, item := range list.Content {
		entries[i].Pos = diag.Pos{File: pos.File, Line: item.Line + offset, Col: item.Column}
	}
}
