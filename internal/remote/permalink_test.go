package remote_test

import (
	"net/url"
	"strings"
	"testing"

	remotes "github.com/quayside/quayside/internal/remote"
)

func TestLine(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/org/fleet.git":             "https://github.com/org/fleet/blob/c0ffee/a/b.yaml#L7",
		"https://github.com/org/fleet/":                "https://github.com/org/fleet/blob/c0ffee/a/b.yaml#L7",
		"git@github.com:org/fleet.git":                 "https://github.com/org/fleet/blob/c0ffee/a/b.yaml#L7",
		"ssh://git@github.example.com:2222/o/f.git":    "https://github.example.com/o/f/blob/c0ffee/a/b.yaml#L7",
		"https://gitlab.example.com:8443/a/b/c.git":    "https://gitlab.example.com:8443/a/b/c/-/blob/c0ffee/a/b.yaml#L7",
		"http://gitea.local/o/f":                       "http://gitea.local/o/f/src/commit/c0ffee/a/b.yaml#L7",
		"codeberg.org:o/f":                             "https://codeberg.org/o/f/src/commit/c0ffee/a/b.yaml#L7",
		"git@bitbucket.org:o/f.git":                    "https://bitbucket.org/o/f/src/c0ffee/a/b.yaml#lines-7",
		"https://GitHub.com/o/f":                       "https://github.com/o/f/blob/c0ffee/a/b.yaml#L7",
		"https://git.example.com/o/f":                  "",
		"https://evil.example/github.com/o":            "",
		"https://github.com":                           "",
		"file:///srv/github.com/f.git":                 "",
		"../github.com":                                "",
		"git@github.com:org/\"onclick=x y'.git":        "https://github.com/org/%22onclick=x%20y%27/blob/c0ffee/a/b.yaml#L7",
		"javascript:alert(1)//github.com/o/f":          "",
		"https://user:secret@github.com/org/fleet":     "https://github.com/org/fleet/blob/c0ffee/a/b.yaml#L7",
		"https://github.com/org/fleet?x={path}#{line}": "https://github.com/org/fleet/blob/c0ffee/a/b.yaml#L7",
		"": "",
	} {
		if got := remotes.NewLineLinks(remote).Line("c0ffee", "a/b.yaml", 7); got != want {
			t.Errorf("%s: got %q, want %q", remote, got, want)
		}
	}
	hub := remotes.NewLineLinks("https://github.com/o/f")
	for got, want := range map[string]string{
		hub.Line("c0ffee", "a.yaml", 0):            "https://github.com/o/f/blob/c0ffee/a.yaml",
		hub.Line("", "a.yaml", 1):                  "",
		hub.Line("c0ffee", "", 1):                  "",
		hub.Line("c0ffee", "ä b/#1?x%.yaml", 1):    "https://github.com/o/f/blob/c0ffee/%C3%A4%20b/%231%3Fx%25.yaml#L1",
		hub.Line("c0ffee", "a/{line}/{commit}", 3): "https://github.com/o/f/blob/c0ffee/a/%7Bline%7D/%7Bcommit%7D#L3",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParseLinks(t *testing.T) {
	for text, want := range map[string]string{
		"https://github.com/o/f": "https://github.com/o/f/blob/c0ffee/a/b.yaml#L7",

		"https://git.example.com/o/f/tree/{path}?h={commit}#n{line}":                   "https://git.example.com/o/f/tree/a/b.yaml?h=c0ffee#n7",
		"https://dev.azure.com/o/p/_git/f?path=/{path}&version=GC{commit}&line={line}": "https://dev.azure.com/o/p/_git/f?path=/a/b.yaml&version=GCc0ffee&line=7",
		"https://git.example.com/o/f":                                                  "error: is not a repository of GitHub, GitLab, Forgejo and Gitea, Bitbucket: specify the URL",
		"https://git.example.com/{commit}":                                             "error: contains {path} 0 times",
		"https://git.example.com/{commit}/{path}{path}":                                "error: contains {path} 2 times",
		"javascript:alert({commit},{path})":                                            "error: is not an http or https URL with",
		"https://a.example/{commit}/{path}/{user}":                                     "error: is not an http or https URL with",
		"https://u:p@a.example/{commit}/{path}":                                        "error: is not an http or https URL with",
	} {
		f, err := remotes.ParseLinks(text)
		if wanted, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), wanted) {
				t.Errorf("%s: got %v, want %s", text, err, wanted)
			}
			continue
		}
		if got := f.Line("c0ffee", "a/b.yaml", 7); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// FuzzLine checks, for any path, that a URL is empty or leads to the host of the remote over http or https.
func FuzzLine(f *testing.F) {
	f.Add("git@github.com:o/f.git", "a/../b?c#d", 3)
	f.Add("https://gitlab.com/o/f", "\"><script>", 0)
	f.Add("https://github.com@evil.example/o", "\x00\u202e", 1)
	f.Fuzz(func(t *testing.T, remote, path string, line int) {
		got := remotes.NewLineLinks(remote).Line("c0ffee", path, line)
		if got == "" {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.ContainsAny(got, "\"'<> \n\t`") {
			t.Errorf("%q of %q is %q: %v", path, remote, got, err)
		}
	})
}
