package helm

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestHostileCharts runs charts that loop, exhaust memory or reach out of the process. Each must end with an
// error that names chart and template, and must not harm the next chart.
func TestHostileCharts(t *testing.T) {
	if testing.Short() {
		t.Skip("spends the CPU time and memory that a chart may use")
	}
	p := newPool(t)
	const at = "beacon/templates/a.yaml"
	for name, c := range map[string]struct {
		text  string
		files map[string]string
		want  string // part of the error; "" if any result is right
	}{
		"include, exponential": {text: `{{ include "c0" . }}`, files: map[string]string{"templates/_c.tpl": doubling()}, want: at + ": chart beacon 1.2.3: templating exceeds"},
		"include, endless":     {text: `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, want: at},
		"template, endless":    {text: `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, want: at},
		"tpl, endless":         {text: `{{ tpl .Values.x . }}`, files: map[string]string{"values.yaml": "x: '{{ tpl .Values.x . }}'\n"}, want: at},
		"until":                {text: `{{ range until 1000000000 }}x{{ end }}`, want: at},
		"nested loops":         {text: `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, want: at},
		"repeat":               {text: `{{ repeat 1000000000 "x" }}`, want: at + ":1:3: chart beacon 1.2.3: executing"},
		"gigabytes":            {text: `{{ $a := repeat 60000000 "x" }}{{ range until 1000 }}{{ $a }}{{ end }}`, want: at},
		"indent":               {text: `{{ indent 2000000000 "x" }}`, want: at},
		"kept lists":           {text: `{{ $d := dict }}{{ range until 1000000 }}{{ $_ := set $d (toString .) (until 10000) }}{{ end }}`, want: at},
		"cycle in toYaml":      {text: `{{ $d := dict }}{{ $_ := set $d "d" $d }}kind: {{ toYaml $d }}`},
		"cycle in deepCopy":    {text: `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d }}`, want: at},
		"cycle in merge":       {text: `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $e := dict }}{{ $_ := set $e "d" $e }}{{ merge $d $e }}`, want: at},
		"keys":                 {text: `{{ range until 100000 }}{{ $x := genPrivateKey "rsa" }}{{ end }}`, want: at},
		"large output":         {text: `{{ range until 80 }}---` + "\nkind: A\nx: {{ repeat 1000000 \"x\" }}\n{{ end }}", want: "chart beacon 1.2.3: the templates render more than 64 MiB"},
		"file":                 {text: "kind: A\nx: {{ .Files.Get \"../../../../etc/passwd\" | quote }}\nz: {{ .Files.Get \"/etc/passwd\" | quote }}\n"},
		"DNS":                  {text: `{{ getHostByName "example.com" }}`, want: at + ":1:3: chart beacon 1.2.3: getHostByName is refused: templates have no network"},
		"env":                  {text: `{{ env "HOME" }}`, want: `function "env" not defined`},
		"expandenv":            {text: `{{ expandenv "$HOME" }}`, want: `function "expandenv" not defined`},
		"own functions":        {text: `{{ quaysideLeave }}{{ quaysideLeave }}{{ quaysideEnter 99 }}{{ quaysideEnter -1 }}`},
		"regular expression":   {text: `{{ regexMatch "(a*)*(a*)*(a*)*b" (repeat 100000 "a") }}`, want: at},
		"aliases in output":    {text: laughs(), want: at},
		"aliases in values":    {text: configMap, files: map[string]string{"values.yaml": laughs()}, want: "beacon"},
		"deep output":          {text: "kind: A\nx: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), want: at},
		"less deep output":     {text: "kind: A\nx: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), want: at + ": chart beacon 1.2.3: the template renders an invalid object: nested deeper than 100 levels"},
		"schema, exponential":  {text: configMap, files: map[string]string{"values.schema.json": doublingSchema()}, want: "beacon/values.schema.json: chart beacon 1.2.3: templating exceeds"},
		"schema of a file":     {text: configMap, files: map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`}, want: "which is outside of the chart"},
		"schema of a server":   {text: configMap, files: map[string]string{"values.schema.json": `{"$ref": "http://127.0.0.1:1/x.json"}`}, want: "which is outside of the chart"},
		"subchart bomb":        {text: configMap, files: map[string]string{"charts/sub-1.0.0.tgz": string(pack(t, regular("sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"), regular("sub/x", strings.Repeat("\x00", 110<<20))))}, want: "beacon"},
		"strange hook":         {text: "kind: A\nmetadata: {annotations: {helm.sh/hook: [a]}}\n", want: at},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"templates/a.yaml": c.text}
			for name, text := range c.files {
				files[name] = text
			}
			got, err := p.Template(t.Context(), chartOf(files), options())
			t.Logf("%.300v", err)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && strings.Contains(fmt.Sprint(got.Resources), "root:"):
				t.Errorf("a template read a file: %v", got.Resources)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("want %q", c.want)
			}
			if got := template(t, p, map[string]string{"templates/a.yaml": configMap}, options()); len(got) != 1 || got[0] != "beacon/templates/a.yaml ConfigMap/a" {
				t.Errorf("the next chart: %q", got)
			}
		})
	}
	p.Close()
	// On Linux, the memory of a child includes the memory of this process at the time of the start. The
	// measurement is therefore valid only if this process is small, as it is without the corpus.
	switch own, rss := ownRSS(), childrenRSS(); {
	case own > 700<<20:
		t.Logf("memory of the children not measured: this process used %d MiB", own>>20)
	case rss > 850<<20:
		t.Errorf("a child used %d MiB", rss>>20)
	default:
		t.Logf("the largest child used %d MiB", rss>>20)
	}
}

// doubling returns templates that include each other 2^40 times.
func doubling() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "{{ define \"c%d\" }}{{ include \"c%d\" . }}{{ include \"c%d\" . }}{{ end }}\n", i, i+1, i+1)
	}
	return b.String() + `{{ define "c40" }}x{{ end }}`
}

// doublingSchema returns a schema whose parts are evaluated 2^40 times.
func doublingSchema() string {
	var b strings.Builder
	b.WriteString(`{"$ref": "#/definitions/d0", "definitions": {`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}, `, i, i+1, i+1)
	}
	return b.String() + `"d40": {"type": "object"}}}`
}

// laughs returns YAML whose aliases expand to 10^10 values.
func laughs() string {
	var b strings.Builder
	b.WriteString("kind: A\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return b.String()
}

// TestHostileArchives checks that archives with too many or too large files are refused before their end.
func TestHostileArchives(t *testing.T) {
	chart := regular("beacon/Chart.yaml", "name: beacon\n")
	many := []tar.Header{chart}
	for i := range 100_000 {
		many = append(many, regular(fmt.Sprintf("beacon/f%d", i), ""))
	}
	random := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	for i := range random {
		random[i] = byte(i * i >> 8)
	}
	large := []tar.Header{chart}
	for i := range 60 {
		large = append(large, regular(fmt.Sprintf("beacon/f%d", i), string(random)))
	}
	for want, entries := range map[string][]tar.Header{
		"more than 20000 files":        many,
		"more than 48 MiB":             large,
		"suspicious compression ratio": {chart, regular("beacon/a", strings.Repeat("a", 48<<20))},
	} {
		archive := bytes.NewReader(pack(t, entries...))
		if _, err := ReadArchive(archive); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if archive.Len() == 0 {
			t.Errorf("%s: the archive is read to its end", want)
		}
	}
}
