package yamlnode

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// values maps JSON values to their canonical form and to flow YAML on one line. Both texts are empty
// for a value that must be rejected.
func values() map[string][2]string {
	deep := strings.Repeat("[", 101) + strings.Repeat("]", 101)
	return map[string][2]string{
		`{"kind":"EtcdCluster","version":"v1beta2"}`: {`{"kind":"EtcdCluster","version":"v1beta2"}`, `{kind: EtcdCluster, version: v1beta2}`},
		`{"b":1, "a":{"d":[],"c":{}}}`:               {`{"a":{"c":{},"d":[]},"b":1}`, `{a: {c: {}, d: []}, b: 1}`},
		`[1,[2,{"b":null}],"~","0x10","a: b"]`:       {`[1,[2,{"b":null}],"~","0x10","a: b"]`, `[1, [2, {b: null}], "~", "0x10", "a: b"]`},
		`{"y":"y","":" "}`:                           {`{"":" ","y":"y"}`, `{"": " ", "y": "y"}`},
		`"<\ud83d\ude00\u2028\/é\n"`:                 {`"<😀\u2028/é\n"`, `"<😀\u2028/é\n"`},
		`1.0`:                                        {`1`, `1`},
		`1e3`:                                        {`1000`, `1000`},
		`-0.0`:                                       {`0`, `0`},
		`1.50`:                                       {`1.5`, `1.5`},
		`1e400`:                                      {`"1e400"`, `1e400`},
		`18446744073709551616`:                       {`18446744073709551616`, `18446744073709551616`},
		` true `:                                     {`true`, `true`},
		``:                                           {`null`, `null`},
		`{"a":1,"a":2}`:                              {},
		`{"a":1,}`:                                   {},
		`{"a"}`:                                      {},
		`[,1]`:                                       {},
		`[1`:                                         {},
		`{`:                                          {},
		`"a`:                                         {},
		`tru`:                                        {},
		`1 2`:                                        {},
		deep:                                         {},
		strings.Replace(deep[1:len(deep)-1], "[]", "[ ]", 1): {deep[1 : len(deep)-1], deep[1 : len(deep)-1]},
	}
}

func TestCanonical(t *testing.T) {
	for raw, want := range values() {
		got, err := Canonical([]byte(raw))
		if string(got) != want[0] || (err == nil) != (want[0] != "") {
			t.Errorf("%s: got %s, %v, want %s", raw, got, err, want[0])
		}
		var flow bytes.Buffer
		err = FlowJSON(&flow, []byte(raw))
		if flow.String() != want[1] || (err == nil) != (want[1] != "") {
			t.Errorf("%s in YAML: got %s, %v, want %s", raw, &flow, err, want[1])
		}
	}
}

// FuzzCanonical checks that Canonical returns the value that the document parser finds in the input, and in
// the YAML forms of the input.
func FuzzCanonical(f *testing.F) {
	for raw := range values() {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read := func(value string) string {
			docs, err := Documents("", []byte(value), Limits{Depth: 102})
			if err != nil || len(docs) != 1 {
				return ""
			}
			got, err := JSON(docs[0])
			if err != nil {
				return ""
			}
			return string(got)
		}
		got, err := Canonical(raw)
		if err != nil || !json.Valid(raw) {
			return
		}
		want := `{"v":` + string(got) + `}`
		if parsed := read(`{"v":` + string(raw) + `}`); parsed != want && parsed != "" {
			t.Errorf("%q: got %s, the parser of documents %s", raw, want, parsed)
		}
		var flow, block bytes.Buffer
		if err := FlowJSON(&flow, raw); err != nil || read("v: "+flow.String()) != want {
			t.Errorf("%q: the parser does not find %s, %v in %s", raw, got, err, &flow)
		}
		if err := BlockJSON(&block, raw, 0); err != nil || read("v:"+block.String()) != want {
			t.Errorf("%q: the parser does not find %s, %v in %s", raw, got, err, &block)
		}
	})
}
