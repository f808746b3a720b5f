package fbc

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// endless is a reader that repeats its text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// TestHostile checks that input designed to exhaust resources is rejected early.
func TestHostile(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for _, tt := range []struct {
		name, want string
		r          io.Reader
	}{
		{"object without end", "object larger than 128 MiB", io.MultiReader(strings.NewReader(`{"schema":"`), &endless{text: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})},
		{"document without end", "document of more than 32 MiB", &endless{text: "a: b\n"}},
		{"line without end", "document of more than 32 MiB", &endless{text: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
		{"alias bomb", "more than 2000000 values", strings.NewReader("schema: olm.package\n" + bomb)},
		{"deep JSON", "malformed JSON", strings.NewReader(`{"schema":"x","a":` + strings.Repeat("[", 1_000_000))},
		{"deep YAML", "deeper", strings.NewReader("schema: x\na: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000))},
		{"long name", "name of 2000 bytes exceeds the limit of 1024", strings.NewReader(`{"schema":"olm.package","name":"` + strings.Repeat("a", 2000) + `"}`)},
		{"large property", ": 1048580 bytes exceed the limit of 1048576", strings.NewReader(`{"schema":"olm.bundle","package":"a","properties":[{"type":"x","value":"` + strings.Repeat("a", 1<<20+2) + `"}]}`)},
		{"many entries", "more than 100000 elements", strings.NewReader(`{"schema":"olm.channel","package":"a","entries":[` + strings.Repeat("{},", maxEntries) + `{}]}`)},
		{"many faults", "more than 500 faults", &endless{text: "{}"}},
		{"many objects", "more than 1000000 objects", &endless{text: `{"schema":"x"}`}},
		{"many blanks", "", io.LimitReader(&endless{text: "    "}, 1<<20)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if testing.Short() && tt.name == "object without end" {
				t.Skip("one string of 128 MiB: minutes with the race detector")
			}
			_, err := Decode("f", tt.r)
			if tt.want == "" && err == nil {
				return
			}
			if err == nil || tt.want == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.300v, want %q", err, tt.want)
			}
		})
	}
}

// TestWindow decodes objects larger than the window. Positions after them must be correct.
func TestWindow(t *testing.T) {
	big := strings.Repeat("x\\n", 400<<10)
	in := "{\"schema\":\"other\",\n\"a\":\"" + big + "\",\n\n\"b\":1}\n" + strings.Repeat("\n", 300<<10) + "  {\"schema\":\"olm.package\",\n\"name\":\n 7}"
	_, err := Decode("f", strings.NewReader(in))
	want := fmt.Sprintf("f:%d:2: name: expected a string, got a number", 5+(300<<10)+2)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLargeYAML decodes a file larger than the limit for one document. Memory use must be small, and
// the fault in the last line must have the correct position.
func TestLargeYAML(t *testing.T) {
	if testing.Short() {
		t.Skip("more than 128 MiB of YAML")
	}
	doc := "---\nschema: other\nname: " + strings.Repeat("x", 1<<20) + "\n"
	const count = 140
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode("f", io.MultiReader(io.LimitReader(&endless{text: doc}, count*int64(len(doc))), strings.NewReader("name: [\n")))
	runtime.ReadMemStats(&after)
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 48 {
		t.Errorf("%d MiB of memory were used to decode %d documents of 1 MiB", used, count)
	}
	want := fmt.Sprintf("f:%d: malformed YAML: did not find expected node content", count*3+2)
	if err == nil || err.Error() != want {
		t.Errorf("got %.300v, want %s", err, want)
	}
}

// TestEmbedded decodes the metadata of CSVs embedded in several forms.
func TestEmbedded(t *testing.T) {
	json := `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","spec":{"displayName":"D \"q\" \u00fc","customresourcedefinitions":{"owned":[{"name":"x"}]}}}`
	for name, csv := range map[string]string{
		"JSON":       json,
		"kind last":  `{"spec":{"displayName":"D \"q\" \u00fc","customresourcedefinitions":{"owned":[{"name":"x"}]},"pad":"` + strings.Repeat("p", 10_000) + `"},"kind":"ClusterServiceVersion"}`,
		"YAML":       "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nspec:\n  displayName: D \"q\" ü\n  customresourcedefinitions:\n    owned:\n    - name: x\n",
		"large":      strings.Replace(json, `"spec":{`, `"spec":{"icon":"`+strings.Repeat("i", 500_000)+`",`, 1),
		"with a CRD": json,
	} {
		t.Run(name, func(t *testing.T) {
			crd := base64.StdEncoding.EncodeToString([]byte(`{"kind":"CustomResourceDefinition","metadata":{"annotations":{"x":"ClusterServiceVersion"}}}`))
			text := base64.StdEncoding.EncodeToString([]byte(csv))
			in := fmt.Sprintf(`{"schema":"olm.bundle","package":"a","name":"b","properties":[{"type":"olm.bundle.object","value":{"data":"%s"}},{"type":"olm.bundle.object","value":{"data":"%s"}}]}`, crd, strings.ReplaceAll(text, "/", `\/`))
			c, err := Decode("f", bytes.NewReader([]byte(in)))
			if err != nil {
				t.Fatal(err)
			}
			m := c.Packages[0].Bundles[0].Metadata
			if m.DisplayName != `D "q" ü` || len(m.Owned) != 1 || m.Owned[0] != "x" {
				t.Errorf("got %+v", m)
			}
		})
	}
}

// TestYAMLEqualsJSON decodes the same objects in both formats.
func TestYAMLEqualsJSON(t *testing.T) {
	fromJSON, err := LoadFS(fstest.MapFS{"a": {Data: []byte(`{"schema":"olm.bundle","name":"b","package":"a","image":"i","properties":[{"type":"x","value":{"a":[1,2.5,"1",true,null,"yes"],"b":12345678901234567890}}]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	fromYAML, err := LoadFS(fstest.MapFS{"a": {Data: []byte("schema: olm.bundle\nname: b\npackage: a\nimage: i\nproperties:\n- type: x\n  value:\n    a: [1, 2.5, '1', true, null, \"yes\"]\n    b: 12345678901234567890\n")}})
	if err != nil {
		t.Fatal(err)
	}
	got, want := fromYAML.Packages[0].Bundles[0].Properties[0], fromJSON.Packages[0].Bundles[0].Properties[0]
	if !bytes.Equal(got.Value, want.Value) {
		t.Errorf("got %s, want %s", got.Value, want.Value)
	}
}

// TestIgnoreFileFits checks that .indexignore files up to the size limit are accepted, and larger files rejected.
func TestIgnoreFileFits(t *testing.T) {
	full := strings.Repeat("#"+strings.Repeat("x", 510)+"\n", maxIgnore/512)
	for text, fits := range map[string]bool{full: true, full + "\n": false, full + full: false} {
		_, err := LoadFS(fstest.MapFS{".indexignore": {Data: []byte(text)}})
		if err != nil && !strings.Contains(err.Error(), ".indexignore: too large") || (err == nil) != fits {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}
