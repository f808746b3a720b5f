package fbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
)

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(strings.Join(smallObjects(), "\n")))
	for _, o := range smallObjects() {
		f.Add([]byte(o))
	}
	f.Add([]byte(`{"schema":"olm.bundle","properties":[{"value":[1,2],"type":"olm.gvk"},{"type":"olm.csv.metadata","value":{"description":"\ud83d\ude00 # x","installModes":7}}]}`))
	f.Add([]byte(`{"name":"a","schema":"olm.package"}{`))
	f.Add([]byte(`{"schema":"olm.deprecations","package":"a"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
			return
		}
		checkDecode(t, data)
		if _, err := Decode("f", bytes.NewReader(data)); err == nil && !json.Valid(asArray(data)) {
			t.Fatalf("accepted invalid JSON: %q", data)
		}
	})
}

func FuzzDecodeYAML(f *testing.F) {
	f.Add([]byte("---\nschema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\npackage: a\nname: c\nentries:\n- name: a.v1\n  skips: [x, 'y']\n"))
	f.Add([]byte("# words\n%YAML 1.1\n---\nschema: olm.bundle\nname: a.v1\npackage: a\nproperties:\n- {type: olm.package, value: {packageName: a, version: 1.0.0}}\n- type: olm.bundle.object\n  value: {data: e30=}\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nschema: olm.package\n"))
	f.Add([]byte("schema: >\n  ---\n  x\n--- |\n---\n"))
	f.Add([]byte(lifecycleDocument("")))
	f.Add([]byte(lifecycleDocument("- {name: '1.3', phases: [{name: x, startDate: 2025-01-01, endDate: 2025-01-02, more: 1}], platformCompatibility: [{name: openshift, versions: ['4.1']}]}\n")))
	f.Fuzz(func(t *testing.T, data []byte) { checkDecode(t, data) })
}

// checkDecode decodes data. The positions of all faults must be in the input. Reading one byte at a time must
// give the same result. Encoding and decoding the content must not change it.
func checkDecode(t *testing.T, data []byte) {
	t.Helper()
	c, err := Decode("f", bytes.NewReader(data))
	again, err2 := Decode("f", oneByte{bytes.NewReader(data)})
	if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("at once: %v\nbyte by byte: %v", err, err2)
	}
	if err != nil {
		checkPlaces(t, data, err)
		return
	}
	for _, p := range c.Packages {
		for _, l := range p.Lifecycles {
			checkLifecycle(t, data, l)
		}
	}
	if d := cmp.Diff(c, again); d != "" {
		t.Fatalf("read byte by byte: %s", d)
	}
	_, _ = catalog.New(c) // New may change c, so only the copy is used afterwards
	var out bytes.Buffer
	if err := Encode(&out, again, nil); err != nil {
		return // YAML accepts this property, but JSON rejects it
	}
	back, err := Decode("f", bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatalf("decoding the encoded content: %v\n%s", err, out.Bytes())
	}
	again.Others = nil // not encoded
	again.Packages = slices.DeleteFunc(again.Packages, func(p catalog.PackageData) bool { return p.Undeclared && hasOnlyFaultyLifecycles(p) })
	for i := range again.Packages {
		again.Packages[i].Lifecycles = slices.DeleteFunc(again.Packages[i].Lifecycles, func(l catalog.LifecycleData) bool { return len(l.Faults) > 0 })
		for j := range again.Packages[i].Bundles {
			again.Packages[i].Bundles[j].Embedded = false
		}
	}
	if d := cmp.Diff(again, back, noPos()); d != "" {
		t.Fatalf("encoded and decoded: -want +got\n%s", d)
	}
}

// hasOnlyFaultyLifecycles reports whether a package consists only of lifecycles with faults.
func hasOnlyFaultyLifecycles(p catalog.PackageData) bool {
	return len(p.Channels)+len(p.Bundles)+len(p.Deprecations) == 0 && !slices.ContainsFunc(p.Lifecycles, func(l catalog.LifecycleData) bool { return len(l.Faults) == 0 })
}

func checkPlaces(t *testing.T, data []byte, err error) {
	t.Helper()
	var list diag.List
	if !errors.As(err, &list) {
		t.Fatalf("error is a %T, want diag.List", err)
	}
	lines := bytes.Count(data, []byte("\n")) + 1
	for _, e := range list {
		if e.Pos.Line > lines || e.Pos.Line < 0 || e.Pos.Col > len(data)+1 {
			t.Fatalf("%v: the input has %d lines, %d bytes", e, lines, len(data))
		}
	}
}

// checkLifecycle checks that positions of faults are in the document, and that a document
// without faults is valid.
func checkLifecycle(t *testing.T, data []byte, l catalog.LifecycleData) {
	t.Helper()
	var faults diag.List
	for _, f := range l.Faults {
		faults.Addf(f.Pos, "%s", f.Msg)
	}
	if len(faults) > 0 {
		checkPlaces(t, data, faults)
		return
	}
	for _, v := range l.Versions {
		err := catalog.CheckMinor(v.Name)
		for i, p := range v.Phases {
			if err = errors.Join(err, p.Check()); i > 0 {
				err = errors.Join(err, p.CheckFollows(v.Phases[i-1]))
			}
		}
		if err != nil || len(v.Phases) == 0 {
			t.Fatalf("accepted without a fault: %d phases, %v", len(v.Phases), err)
		}
	}
}

func asArray(data []byte) []byte {
	var out []byte
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var v json.RawMessage
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return append(append([]byte("["), bytes.TrimPrefix(out, []byte(","))...), ']')
		}
		if err != nil {
			return nil
		}
		out = append(append(out, ','), v...)
	}
}

// oneByte reads one byte at a time.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }
