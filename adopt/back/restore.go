package back

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/kobj"
)

// Restored returns a live object with the fields that some managers wrote as they
// were before, and with what they removed; live itself where nothing differs. What
// others wrote since stays, and so do the owners, the finalizers and the status.
// Lists are taken as a whole.
func Restored(live, before kobj.Object, managers ...string) kobj.Object {
	theirs := fields{}
	for _, entry := range kobj.Items(live, "metadata", "managedFields") {
		if slices.Contains(managers, kobj.Text(entry, "manager")) {
			theirs.add(kobj.Map(entry, "fieldsV1"))
		}
	}
	fixed := kobj.Object{}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if v, ok := live[key]; ok {
			fixed[key] = v
		}
	}
	meta := maps.Clone(kobj.Map(live, "metadata"))
	for _, key := range []string{"labels", "annotations"} {
		now := restored(kobj.Map(live, "metadata", key), kobj.Map(before, "metadata", key), theirs["metadata"][key])
		if meta[key] = now; len(now) == 0 {
			delete(meta, key)
		}
	}
	fixed["metadata"] = meta
	out := kobj.Object(restored(live, before, theirs))
	delete(out, "status")
	if maps.Copy(out, fixed); kobj.Equal(out, live) {
		return live
	}
	return out
}

// restored returns a live mapping with these fields as they were before, and what
// it no longer has.
func restored(live, before map[string]any, theirs fields) map[string]any {
	out := maps.Clone(before)
	if out == nil {
		out = map[string]any{}
	}
	for key, now := range live {
		was, had := before[key]
		below, written := theirs[key]
		a, isMap := now.(map[string]any)
		b, wasMap := was.(map[string]any)
		switch {
		case isMap && (wasMap || !had && below != nil):
			if m := restored(a, b, below); len(m) > 0 || had {
				out[key] = m
			}
		case !written:
			out[key] = now
		}
	}
	return out
}

// Managed returns what the managedFields of an object are once some managers gave
// theirs up: those of before get back what they had.
func Managed(live, before kobj.Object, managers ...string) []any {
	var out []any
	there := map[writer]bool{}
	for _, entry := range kobj.Items(before, "metadata", "managedFields") {
		if w := writerOf(entry); w.subresource == "" {
			out, there[w] = append(out, entry), true
		}
	}
	for _, entry := range kobj.Items(live, "metadata", "managedFields") {
		if w := writerOf(entry); !there[w] && !slices.Contains(managers, w.manager) {
			out = append(out, entry)
		}
	}
	return out
}

// Manage reports whether some managers have fields of an object, who had none.
func Manage(live, before kobj.Object, managers ...string) bool {
	had := map[writer]bool{}
	for _, entry := range kobj.Items(before, "metadata", "managedFields") {
		had[writerOf(entry)] = true
	}
	return slices.ContainsFunc(kobj.Items(live, "metadata", "managedFields"), func(entry map[string]any) bool {
		w := writerOf(entry)
		return slices.Contains(managers, w.manager) && !had[w]
	})
}

// TakenFromOLM reports whether OLM had fields of an object before, and has none of
// those now.
func TakenFromOLM(live, before kobj.Object) bool {
	has := map[writer]bool{}
	for _, entry := range kobj.Items(live, "metadata", "managedFields") {
		has[writerOf(entry)] = true
	}
	return slices.ContainsFunc(kobj.Items(before, "metadata", "managedFields"), func(entry map[string]any) bool {
		return plan.ByOLM(entry) && !has[writerOf(entry)]
	})
}

// writer is who wrote the fields of an entry of managedFields, and how.
type writer struct{ manager, operation, subresource string }

func writerOf(entry map[string]any) writer {
	return writer{kobj.Text(entry, "manager"), kobj.Text(entry, "operation"), kobj.Text(entry, "subresource")}
}

// fields are those of a mapping that somebody wrote; of one that is no mapping, or
// is written as a whole, nothing is below.
type fields map[string]fields

// add adds fields in the form of managedFields.
func (f fields) add(written map[string]any) {
	for key, below := range written {
		name, ok := strings.CutPrefix(key, "f:")
		if !ok {
			continue
		}
		m, _ := below.(map[string]any)
		if inside := f[name]; inside == nil {
			f[name] = nil
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(m)), func(k string) bool { return strings.HasPrefix(k, "f:") }) {
			continue
		}
		if f[name] == nil {
			f[name] = fields{}
		}
		f[name].add(m)
	}
}
