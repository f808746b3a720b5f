package diag

import (
	"net/url"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"http://bob:SECRET@host/x":         "http://***@host/x",
		"https://TOKEN@host":               "https://***@host",
		"pushing to https://a:b@c: no":     "pushing to https://***@c: no",
		`"https://bob:p@ss@host/x"`:        `"https://***@host/x"`,
		"a https://t@h and ssh://git@h/x":  "a https://***@h and ssh://***@h/x",
		"docker://u:p@quay.io/x@sha256:00": "docker://***@quay.io/x@sha256:00",
		"https://h/x@v1":                   "https://h/x@v1",
		"git@host:x":                       "git@host:x",
		"quay.io/x@sha256:00":              "quay.io/x@sha256:00",
		"mail me@example.com":              "mail me@example.com",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzRedact checks that no password of a URL remains.
func FuzzRedact(f *testing.F) {
	f.Add("bob", "SECRET")
	f.Add("", "p@ss:w/o?r#d")
	f.Fuzz(func(t *testing.T, user, password string) {
		secret := "S3CRET" + password + "S3CRET"
		u := url.URL{Scheme: "https", User: url.UserPassword(user, secret), Host: "host", Path: "/x"}
		for _, text := range []string{u.String(), "pushing to " + u.String() + ": no", `"` + u.String() + `"`} {
			if got := Redact(text); strings.Contains(got, "S3CRET") {
				t.Errorf("%q: %q", text, got)
			}
		}
	})
}
