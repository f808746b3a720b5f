// Package remote says what a remote of Git's is, as a URL or as user@host:path: which
// server it is on, which repository of that it is, and by the server's name which
// forge runs there. It asks nobody.
//
// Start from [Parse].
package remote

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Remote is a repository on a server.
type Remote struct {
	Scheme  string // of the server's pages: "https", or "http" where Git is told so
	Host    string // of the pages, in lower case, with a port that is not the scheme's own: "github.com", "git.example.com:3000"
	Project string // the path of the repository without ".git": "acme/fleet"; may be empty
}

// Parse returns where a remote is. It is false for one that is on no server, as a path
// is, or on one that has no pages. Who logs in there and the port of ssh are left out.
func Parse(text string) (Remote, bool) {
	scheme, host, project := "https", "", ""
	if !strings.Contains(text, "://") {
		at, rest, colon := strings.Cut(text, ":")
		host, project = at[strings.LastIndex(at, "@")+1:], rest
		if drive := len(host) < 2; !colon || drive || strings.ContainsAny(at, `/\`) {
			return Remote{}, false
		}
	} else {
		u, err := url.Parse(text)
		if err != nil {
			return Remote{}, false
		}
		host, project = u.Host, u.Path
		switch u.Scheme {
		case "ssh", "git+ssh":
			host = bracketed(u.Hostname())
		case "http", "https":
			scheme = u.Scheme
			host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
		default:
			return Remote{}, false
		}
	}
	host = strings.ToLower(host)
	if u, err := url.Parse("https://" + host); err != nil || u.Host != host || u.Hostname() == "" {
		return Remote{}, false
	}
	project = path.Clean(strings.TrimSuffix(path.Clean("/"+project), ".git"))
	return Remote{scheme, host, strings.TrimPrefix(project, "/")}, true
}

// bracketed returns a host's name as it stands in an address.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Server returns the address of the server's pages.
func (r Remote) Server() *url.URL { return &url.URL{Scheme: r.Scheme, Host: r.Host} }

// Page returns the address of the repository's page.
func (r Remote) Page() string {
	page := r.Server()
	if r.Project != "" {
		page.Path = "/" + r.Project
	}
	return page.String()
}

// Forge is a kind of server that repositories are on.
type Forge string

// The forges that are known.
const (
	GitHub    Forge = "github"
	GitLab    Forge = "gitlab"
	Gitea     Forge = "gitea" // and Forgejo
	Bitbucket Forge = "bitbucket"
)

// names says how the servers of a forge are called.
type names struct {
	forge  Forge
	public []string // whole
	begins []string // of those that others run
}

func table() []names {
	return []names{
		{GitHub, []string{"github.com"}, []string{"github."}},
		{GitLab, []string{"gitlab.com"}, []string{"gitlab."}},
		{Gitea, []string{"codeberg.org", "gitea.com"}, []string{"gitea.", "forgejo."}},
		{Bitbucket, []string{"bitbucket.org"}, nil},
	}
}

// Public returns the forge of a public server; "" of any other.
func (r Remote) Public() Forge {
	for _, n := range table() {
		if slices.Contains(n.public, r.name()) {
			return n.forge
		}
	}
	return ""
}

// Likely returns the forge that a server's name suggests, "" where it suggests none.
// That is enough to link to it, and not to send it a token.
func (r Remote) Likely() Forge {
	for _, n := range table() {
		if slices.ContainsFunc(n.begins, func(s string) bool { return strings.HasPrefix(r.name(), s) }) {
			return n.forge
		}
	}
	return r.Public()
}

// name returns the host without its port.
func (r Remote) name() string { return r.Server().Hostname() }
