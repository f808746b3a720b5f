package declare

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// checkRelease checks the name of a release, by the rules of Helm
// (helm.sh/helm/v4/pkg/chart/common/util, ValidateReleaseName).
func (c checker) checkRelease(field, name string) {
	if len(name) > 53 || !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`).MatchString(name) {
		c.Addf(field, "%q is not a release name: at most 53 lower case letters, digits, dots and dashes", name)
	}
}

// mapping returns the canonical JSON of an optional mapping, or nil if it is empty.
func (c checker) mapping(field string, raw json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &fields) != nil {
		c.Addf(field, "expected a mapping")
	}
	if len(fields) == 0 {
		return nil
	}
	return raw
}

// WithValues returns a copy of a parsed set. The values of its subscriptions then include the values in their
// valuesFiles and their assignments. read returns a file of the workspace. A subscription whose files cannot be
// read is in Unread.
func (s *Set) WithValues(read func(name string) ([]byte, error)) *Set {
	out := *s
	out.Subscriptions = nil
	for _, s := range s.Subscriptions {
		if len(s.ValuesFiles)+len(s.Assignments) == 0 {
			out.Subscriptions = append(out.Subscriptions, s)
			continue
		}
		if err := s.addValues(read); err != nil {
			out.Unread = append(out.Unread, unreadAll(s.At(FieldValuesFiles), err, Unread{Kind: s.Dialect.kind(), Namespace: s.Namespace, Name: s.Name, Package: s.Package})...)
			continue
		}
		out.Subscriptions = append(out.Subscriptions, s)
	}
	return &out
}

// addValues sets the values of s. It merges the values files, then the own values of s, and makes the assignments of s.
func (s *Subscription) addValues(read func(name string) ([]byte, error)) error {
	merged := map[string]any{}
	var errs diag.List
	for i, name := range s.ValuesFiles {
		at := s.Fields.At(diag.Item(fieldsOf(s.Dialect)[FieldValuesFiles], i), s.Pos)
		data, err := read(name)
		if s.OptionalFiles && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs.Addf(at, "file of values %q: %w", name, err)
			continue
		}
		docs, err := yamlnode.Objects(path.Clean(name), data, yamlnode.Limits{})
		errs.Add(at, err)
		if len(docs) > 1 {
			errs.Addf(at, "file of values %q: expected one document, got %d", name, len(docs))
		}
		for _, doc := range docs {
			merged = k8s.Merge(merged, doc)
		}
	}
	errs.Add(s.Pos, s.overrideValues(merged))
	return errs.Err()
}

// overrideValues sets the values of s: merged, overridden by the own values of s, and changed by the assignments of s.
func (s *Subscription) overrideValues(merged map[string]any) error {
	var errs diag.List
	var own map[string]any
	if len(s.OwnValues) > 0 {
		if err := json.Unmarshal(s.OwnValues, &own); err != nil {
			return err
		}
	}
	merged = k8s.Merge(merged, own) // a null stays: it removes a default of the chart
	for i, a := range s.Assignments {
		errs.Add(s.Fields.At(diag.Item("spec.source.helm.parameters", i), s.Pos), a.To(merged))
	}
	raw, err := json.Marshal(merged)
	if err == nil {
		raw, err = yamlnode.Canonical(raw)
	}
	errs.Add(s.Pos, err)
	s.ChartValues = raw
	s.Digest = s.digest()
	return errs.Err()
}
