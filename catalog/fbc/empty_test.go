package fbc

import (
	"strings"
	"testing"
)

// TestEmptyDocuments checks that blank documents cost no allocations. It also checks that the number
// of other empty documents, such as "~", is limited: the decoder has to parse them.
func TestEmptyDocuments(t *testing.T) {
	const pkg = "---\nschema: olm.package\nname: a\ndefaultChannel: b\n---\nschema: olm.channel\npackage: a\nname: b\nentries: [{name: c}]\n---\nschema: olm.bundle\npackage: a\nname: c\nimage: x/y\nproperties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]\n"
	for _, empty := range []string{"---\n", "--- # nothing\n", "---\n...\n", "---\r\n", "# nothing\n---\n"} {
		allocations := func(n int) float64 {
			data := strings.Repeat(empty, n) + pkg
			return testing.AllocsPerRun(2, func() {
				if _, err := Decode("a.yaml", strings.NewReader(data)); err != nil {
					t.Errorf("%d times %q: %v", n, empty, err)
				}
			})
		}
		if few, many := allocations(10), allocations(50_000); many > few+1000 { // the race detector clears pools at random
			t.Errorf("%q: %v allocations for 10, %v for 50000", empty, few, many)
		}
	}
	for _, empty := range []string{"--- ~\n", "%YAML 1.1\n---\n...\n", "--- !!null\n"} {
		_, err := Decode("a.yaml", strings.NewReader(strings.Repeat(empty, 10_001)))
		if err == nil || !strings.Contains(err.Error(), "more than 10000 empty documents") {
			t.Errorf("%q: %v", empty, err)
		}
	}
}
