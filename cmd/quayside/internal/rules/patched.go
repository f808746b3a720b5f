package rules

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/profile"
)

// checkPatched returns an error for each object that a cluster rejects or stores incompletely because of the
// user's overlays. It also returns the warnings of contestedFields.
func checkPatched(s *State) (Findings, error) {
	if len(s.Overlays) == 0 {
		return nil, nil
	}
	f, err := s.Fleet()
	if err != nil {
		return nil, err
	}
	types := admit.NewTypes()
	patched := f.Patches()
	base := sync.OnceValues(f.BaseState)
	clusters := map[string][]string{} // of each fault
	faults := map[string]Finding{}
	for _, name := range f.Clusters() {
		patch := patched(name)
		for _, key := range slices.SortedFunc(maps.Keys(patch), k8s.Key.Compare) {
			found, err := s.newFaults(types, base, key, patch[key])
			if err != nil {
				return nil, err
			}
			for _, fault := range found {
				msg := fmt.Sprintf("%s after overlays: %s: %s", key, fault.Field, fault.Message)
				clusters[msg] = append(clusters[msg], name)
				faults[msg] = Finding{Severity: Error, Code: "invalid-object", Pos: s.overlayPos(&f, name), Subject: key.String(), Msg: msg, Hint: "correct the patch or the object in the overlay"}
			}
		}
		if s.Rendered == nil {
			continue // the warnings need the objects as they were rendered
		}
		contested, err := s.contestedFields(types, name, patch)
		if err != nil {
			return nil, err
		}
		for _, fault := range contested {
			fault.Pos = s.overlayPos(&f, name)
			clusters[fault.Msg] = append(clusters[fault.Msg], name)
			faults[fault.Msg] = fault
		}
	}
	var out Findings
	for _, msg := range slices.Sorted(maps.Keys(faults)) {
		fault := faults[msg]
		if names := clusters[msg]; len(names) < len(f.Clusters()) {
			fault.Msg += " (cluster " + diag.Some(names, 5) + ")"
		}
		out = append(out, s.accept(fault))
	}
	return out, nil
}

// newFaults returns the faults that a changed or added object has only after overlays, not before.
func (s *State) newFaults(types *admit.Types, base func() (diff.State, error), key k8s.Key, o k8s.Object) ([]admit.Fault, error) {
	if o == nil {
		return nil, nil
	}
	found := s.schemaFaults(types, o)
	if len(found) == 0 {
		return nil, nil
	}
	before, err := base()
	if i := slices.IndexFunc(before.Objects, func(o diff.Object) bool { return o.Key() == key }); i >= 0 {
		known := s.schemaFaults(types, k8s.Object(before.Objects[i].Content))
		found = slices.DeleteFunc(found, func(f admit.Fault) bool { return slices.Contains(known, f) })
	}
	return found, err
}

// schemaFaults returns the faults that strict decoding and the API server would find in an object.
func (s *State) schemaFaults(types *admit.Types, o k8s.Object) []admit.Fault {
	shape := types.Check(o)
	var out []admit.Fault
	for _, field := range shape.Unknown {
		out = append(out, admit.Fault{Field: field, Message: o.APIVersion() + " has no such field"})
	}
	if tool := s.tool(); tool != "" {
		_, repeats := types.Distinct(o, func(r admit.Repeat) map[string]any { return r.Items[0] })
		for _, r := range repeats {
			out = append(out, admit.Fault{Field: r.List, Message: fmt.Sprintf("%d items have %s, which the server-side apply of %s rejects", r.Count, r.Key, tool)})
		}
	}
	return slices.Concat(out, shape.Wrong, shape.Missing, admit.Values(o))
}

// tool returns the name of the GitOps tool that applies the tree, or "".
func (s *State) tool() string {
	p, err := profile.Lookup(s.Settings.Profile)
	if err != nil {
		return "" // reading the settings reports the error
	}
	return p.About().Tool
}

// overlayPos returns the position of a cluster's first overlay that uses files of the user.
func (s *State) overlayPos(f *fleet.Fleet, cluster string) diag.Pos {
	x, err := f.Inputs(cluster)
	if err != nil {
		return diag.Pos{}
	}
	var files []string
	for _, o := range x.Overlays {
		for k := range o.Kustomizations() {
			if f.IsUserFile(k.File) {
				files = append(files, k.File)
			}
		}
	}
	if len(files) == 0 {
		return diag.Pos{}
	}
	return diag.Pos{File: f.DisplayPath(slices.Min(files))}
}
