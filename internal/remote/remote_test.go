package remote_test

import (
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/remote"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{ // address of the page, public forge, and forge guessed for links
		"https://github.com/acme/fleet.git":           "https://github.com/acme/fleet github github",
		"https://github.com/acme/fleet/":              "https://github.com/acme/fleet github github",
		"https://GitHub.com/Acme/Fleet":               "https://github.com/Acme/Fleet github github",
		"https://user:secret@github.com:443/a/b?x#y":  "https://github.com/a/b github github",
		"http://git.example.com:80/a/b":               "http://git.example.com/a/b - -",
		"https://git.example.com:3000/a/b":            "https://git.example.com:3000/a/b - -",
		"https://gitlab.example.com:8443/a/b/c.git":   "https://gitlab.example.com:8443/a/b/c - gitlab",
		"ssh://git@gitlab.com:22/group/sub/fleet.git": "https://gitlab.com/group/sub/fleet gitlab gitlab",
		"git+ssh://git@codeberg.org/a/b":              "https://codeberg.org/a/b gitea gitea",
		"ssh://git@[::1]:2222/a/b.git":                "https://[::1]/a/b - -",
		"git@github.com:acme/fleet.git":               "https://github.com/acme/fleet github github",
		"git@github.com:/acme/fleet.git":              "https://github.com/acme/fleet github github",
		"Codeberg.org:a/b":                            "https://codeberg.org/a/b gitea gitea",
		"me@company@forgejo.example.com:a/b":          "https://forgejo.example.com/a/b - gitea",
		"git@bitbucket.org:a/b.git":                   "https://bitbucket.org/a/b bitbucket bitbucket",
		"https://gitea.com/a/b":                       "https://gitea.com/a/b gitea gitea",
		"https://github.com/../../acme/./x/../fleet":  "https://github.com/acme/fleet github github",
		"https://github.com/a%20b/c":                  "https://github.com/a%20b/c github github",
		"https://github.com":                          "https://github.com github github",
		"https://github.com.evil.example/a/b":         "https://github.com.evil.example/a/b - github",
		"https://evil.example/github.com/b":           "https://evil.example/github.com/b - -",
		"https://github.com@evil.example/a/b":         "https://evil.example/a/b - -",
		"git@notgithub.com:a/b":                       "https://notgithub.com/a/b - -",
		"C:fleet":                                     "",
		`C:\fleet`:                                    "",
		"C:/fleet":                                    "",
		"../fleet.git":                                "",
		"./git@github.com:a/b":                        "",
		"/srv/github.com:a/b":                         "",
		"file:///srv/github.com/a/b":                  "",
		"git://github.com/a/b":                        "",
		"https://":                                    "",
		"https://:8080/a/b":                           "",
		"git@git hub.com:a/b":                         "",
		"origin":                                      "",
		"":                                            "",
	} {
		r, ok := remote.Parse(text)
		got := ""
		if ok {
			got = r.Page()
			for _, forge := range []remote.Forge{r.PublicForge(), linkForge(r)} {
				if forge == "" {
					forge = "-"
				}
				got += " " + string(forge)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// linkForge returns the forge for which the line links of a remote are made.
func linkForge(r remote.Remote) remote.Forge {
	switch rest := strings.TrimPrefix(r.LinePattern(), r.Page()); {
	case strings.HasPrefix(rest, "/blob/"):
		return remote.GitHub
	case strings.HasPrefix(rest, "/-/blob/"):
		return remote.GitLab
	case strings.HasPrefix(rest, "/src/commit/"):
		return remote.Gitea
	case rest != "":
		return remote.Bitbucket
	}
	return ""
}

// FuzzParse checks that parsing the URL of a remote's page gives the same remote.
func FuzzParse(f *testing.F) {
	f.Add("git@github.com:a/b.git")
	f.Add("ssh://git@[fe80::1%25eth0]:22/a//b/../c")
	f.Add("https://u:p@GitLab.com:443/a%2fb?c#d")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := remote.Parse(text)
		if !ok {
			return
		}
		if r.Host != strings.ToLower(r.Host) || r.Host == "" || strings.Contains(r.Host, "@") || strings.HasPrefix(r.Project, "/") || strings.Contains("/"+r.Project+"/", "/../") {
			t.Errorf("%q is %+v", text, r)
		}
		if strings.HasSuffix(r.Project, ".git") {
			return // parsing would remove another suffix
		}
		if again, ok := remote.Parse(r.Page()); !ok || again != r {
			t.Errorf("%q is %+v, its page %q %+v", text, r, r.Page(), again)
		}
	})
}
