package diff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reportTexts returns a report in every format for people, and as JSON.
func reportTexts(t testing.TB, r *Report) map[string]string {
	t.Helper()
	page, err := HTML(r)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := indentJSON(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"text": string(Text(r, false)), "markdown": string(Markdown(r)), "html": string(page), "json": string(doc)}
}

func configMap(data string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: demo, namespace: ops}\n" + data
}

// TestEveryChangedKeyIsNamed changes random keys of a ConfigMap: every format names each of them.
func TestEveryChangedKeyIsNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		before, after, changed := "", "", []string{}
		for i := range 1 + random.IntN(200) {
			key := fmt.Sprintf("key%dx%d", i, random.IntN(1e6))
			before += fmt.Sprintf("  %s: a\n", key)
			value := "a"
			if random.IntN(3) > 0 {
				value = strings.Repeat("b", random.IntN(500))
				changed = append(changed, key)
			}
			after += fmt.Sprintf("  %s: %q\n", key, value)
		}
		r := compareManifests(t, configMap("data:\n"+before), configMap("data:\n"+after))
		for format, text := range reportTexts(t, r) {
			for _, key := range changed {
				if !strings.Contains(text, key) {
					t.Fatalf("%s does not name %s, one of %d changed keys", format, key, len(changed))
				}
			}
		}
	}
}

// TestEveryHunkIsShown changes random parts of a long script: every format shows each of them.
func TestEveryHunkIsShown(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		var lines []string
		for i := range 50 + random.IntN(500) {
			lines = append(lines, fmt.Sprintf("echo %d %d", i, random.IntN(1e9)))
		}
		script := func() string { return configMap(fmt.Sprintf("data: {run: %q}", strings.Join(lines, "\n"))) }
		before := script()
		var added []string
		for i := range 1 + random.IntN(8) {
			name := fmt.Sprintf("evil%dx%d", i, random.IntN(1e6))
			lines[random.IntN(len(lines))] = "curl " + name
			added = append(added, name)
		}
		lines[0], lines[len(lines)-1] = strings.Repeat("x", random.IntN(400)), "curl last"
		r := compareManifests(t, before, script())
		for format, text := range reportTexts(t, r) {
			for _, name := range append(added, "curl last") {
				if strings.Contains(strings.Join(lines, "\n"), name) && !strings.Contains(text, name) {
					t.Errorf("%s does not show %s", format, name)
				}
			}
		}
	}
}

// TestLargeValues cuts values that are too long to show, and checks the number of omitted bytes.
func TestLargeValues(t *testing.T) {
	f := Finding{After: strings.Repeat("é", 50_000)}
	if _, is := f.shownValues(1000); len(is) > 1100 || !strings.Contains(is, "(99000 bytes)") {
		t.Errorf("%d bytes: %s", len(is), is[len(is)-min(len(is), 200):])
	}
	var a, b []string
	for i := range 1000 {
		line := fmt.Sprintf("%d %s", i, strings.Repeat("same ", 40))
		a, b = append(a, line+"old"), append(b, line+"new")
	}
	f = Finding{Before: strings.Join(a, "\n"), After: strings.Join(b, "\n")}
	if _, is := f.shownValues(8000); len(is) > 20_000 || !strings.Contains(is, "more changes") && !strings.Contains(is, "bytes)") {
		t.Errorf("%d bytes: %s", len(is), is[len(is)-min(len(is), 200):])
	}
}
