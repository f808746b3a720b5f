package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/page"
)

// TestPolicy checks that the content security policy allows exactly the script and style of the
// page.
func TestPolicy(t *testing.T) {
	for name, p := range map[string]page.Page{
		"plain":         {Title: "a", Body: "<p>{{.}}</p>", Data: "x"},
		"with a script": {Title: "a", Body: "<p>{{.}}</p>\n", Data: "x", Style: ".a { color: red; }\n", Script: "\nlet a = 1 < 2 && \"b\" > 'c';\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := html(t, p)
			policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(got)
			if policy == nil || !strings.HasPrefix(policy[1], "default-src 'none'; ") || strings.Contains(policy[1], "unsafe") {
				t.Fatalf("the policy is %q", policy)
			}
			if before, _, _ := strings.Cut(got, policy[0]); strings.Contains(before, "<style") || strings.Contains(before, "<title") {
				t.Error("the policy does not apply to elements before it")
			}
			inside := regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`).FindAllStringSubmatch(got, -1)
			if want := 1 + strings.Count(name, "script"); len(inside) != want || strings.Count(policy[1], "sha256-") != want {
				t.Fatalf("%d elements, want %d; the policy is %s", len(inside), want, policy[1])
			}
			for _, element := range inside {
				sum := sha256.Sum256([]byte(element[2]))
				if named := element[1] + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], named) {
					t.Errorf("%s is not in %s", named, policy[1])
				}
			}
		})
	}
	if strings.Contains(html(t, page.Page{}), "script") {
		t.Error("a page without a script mentions scripts")
	}
}

// TestText puts hostile text into all parts of a page that may contain untrusted text.
func TestText(t *testing.T) {
	const text = "</title><script>alert(1)</script>\"'><img src=x onerror=a()>\u202e\x1b[31m\n::error::x\n##[group]"
	got := html(t, page.Page{Title: text, Body: `<p title="{{.}}">{{.}}</p><a href="{{.}}">x</a>`, Data: text})
	if strings.Contains(got, "<script") || strings.Contains(got, "<img") || strings.Count(got, "<title>") != 1 || strings.Count(got, `"`) != strings.Count(html(t, page.Page{Title: "x", Body: `<p title="{{.}}">{{.}}</p><a href="{{.}}">x</a>`, Data: "x"}), `"`) {
		t.Error(got)
	}
	if strings.ContainsAny(got, "\u202e\x1b") || strings.Contains(got, "\n::") || strings.Contains(got, "##[") {
		t.Errorf("%q", got)
	}
	if got := html(t, page.Page{Body: `<a href="{{.}}">x</a>`, Data: "javascript:alert(1)"}); strings.Contains(got, "javascript:") {
		t.Error(got)
	}
}

func TestFaults(t *testing.T) {
	for _, p := range []page.Page{{Body: "{{"}, {Body: "{{.Nothing}}", Data: struct{}{}}} {
		if _, err := p.HTML(); err == nil || !strings.Contains(err.Error(), "a page: ") {
			t.Errorf("%q: %v", p.Body, err)
		}
	}
}

func html(t *testing.T, p page.Page) string {
	t.Helper()
	got, err := p.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
