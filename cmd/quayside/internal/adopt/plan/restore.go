package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/k8s"
)

// RestoreValues returns a live object with the earlier values of fields that the given managers wrote, and of
// fields that are missing now. It keeps owners, finalizers, status, and fields that only other managers wrote.
// A list is restored as a whole. If nothing differs, RestoreValues returns live itself.
func RestoreValues(live, before k8s.Object, managers ...string) k8s.Object {
	theirs := fields{}
	for _, entry := range k8s.Items(live, "metadata", "managedFields") {
		if slices.Contains(managers, k8s.Text(entry, "manager")) {
			theirs.add(k8s.Map(entry, "fieldsV1"))
		}
	}
	fixed := k8s.Object{}
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if v, ok := live[key]; ok {
			fixed[key] = v
		}
	}
	meta := maps.Clone(k8s.Map(live, "metadata"))
	for _, key := range []string{"labels", "annotations"} {
		now := restoreFields(k8s.Map(live, "metadata", key), k8s.Map(before, "metadata", key), theirs["metadata"][key])
		if meta[key] = now; len(now) == 0 {
			delete(meta, key)
		}
	}
	fixed["metadata"] = meta
	out := k8s.Object(restoreFields(live, before, theirs))
	delete(out, "status")
	if maps.Copy(out, fixed); k8s.Equal(out, live) {
		return live
	}
	return out
}

// restoreFields returns a copy of live in which two kinds of fields have their values from before: the fields
// in theirs, and the fields that live lacks.
func restoreFields(live, before map[string]any, theirs fields) map[string]any {
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
			if m := restoreFields(a, b, below); len(m) > 0 || had {
				out[key] = m
			}
		case !written:
			out[key] = now
		}
	}
	return out
}

// RestoreManagedFields returns the managedFields of a restored object. It takes the entries of before, except
// those for subresources. It adds the entries of live whose writers have no entry in before, except those of
// the given managers.
func RestoreManagedFields(live, before k8s.Object, managers ...string) []any {
	var out []any
	there := map[fieldWriter]bool{}
	for _, entry := range k8s.Items(before, "metadata", "managedFields") {
		if w := writerOf(entry); w.subresource == "" {
			out, there[w] = append(out, entry), true
		}
	}
	for _, entry := range k8s.Items(live, "metadata", "managedFields") {
		if w := writerOf(entry); !there[w] && !slices.Contains(managers, w.manager) {
			out = append(out, entry)
		}
	}
	return out
}

// HasNewManager reports whether one of the given managers has an entry in the managedFields of live but not in
// those of before.
func HasNewManager(live, before k8s.Object, managers ...string) bool {
	had := fieldWriters(before)
	return slices.ContainsFunc(k8s.Items(live, "metadata", "managedFields"), func(entry map[string]any) bool {
		w := writerOf(entry)
		return slices.Contains(managers, w.manager) && !had[w]
	})
}

// hasLostManager reports whether a field manager of OLM or Helm that has an entry in the managedFields of
// before has none in those of live.
func hasLostManager(live, before k8s.Object) bool {
	has := fieldWriters(live)
	return slices.ContainsFunc(k8s.Items(before, "metadata", "managedFields"), func(entry map[string]any) bool {
		return (IsWrittenByOLM(entry) || isWrittenByHelm(entry)) && !has[writerOf(entry)]
	})
}

// fieldWriter identifies the writer of an entry in managedFields.
type fieldWriter struct{ manager, operation, subresource string }

func writerOf(entry map[string]any) fieldWriter {
	return fieldWriter{k8s.Text(entry, "manager"), k8s.Text(entry, "operation"), k8s.Text(entry, "subresource")}
}

func fieldWriters(o k8s.Object) map[fieldWriter]bool {
	out := map[fieldWriter]bool{}
	for _, entry := range k8s.Items(o, "metadata", "managedFields") {
		out[writerOf(entry)] = true
	}
	return out
}

// fields contains the fields of a mapping that a manager wrote. The value is nil for a field that is no
// mapping, and for a mapping that the manager wrote as a whole.
type fields map[string]fields

// add adds fields in the format of managedFields.
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
