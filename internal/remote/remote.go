// Package remote parses Git remotes, as a URL or as user@host:path, into server, repository and
// forge, and builds the addresses of lines of files on a forge. It makes no requests.
//
// Start from [Parse], and for addresses from [NewLineLinks] or [ParseLinks].
package remote

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Remote is a repository on a server.
type Remote struct {
	Scheme  string // scheme of the web pages: "https", or "http" for an http remote
	Host    string // host of the web pages, in lower case, with a port unless it is the default: "github.com", "git.example.com:3000"
	Project string // the path of the repository without ".git": "acme/fleet"; may be empty
}

// Parse parses a Git remote. It returns false for a path and for a server without web pages. It
// drops the user and the port of ssh.
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
			host = bracketHost(u.Hostname())
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

// bracketHost returns a host for use in a URL: IPv6 addresses in brackets.
func bracketHost(host string) string {
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

// Forge is a type of server that hosts repositories.
type Forge string

// The known forges.
const (
	GitHub    Forge = "github"
	GitLab    Forge = "gitlab"
	Gitea     Forge = "gitea" // and Forgejo
	Bitbucket Forge = "bitbucket"
)

// forgeEntry describes one forge.
type forgeEntry struct {
	forge    Forge
	title    string
	public   []string // host names of public servers
	prefixes []string // prefixes of the host names of other servers
	lines    string   // suffix of a repository's page for a line of a file
	compare  string   // suffix before two compared tags; "" if unknown
	nested   bool     // groups may contain groups
}

// forgeTable lists the forges that quayside links to. Forges with support for pull requests
// are also listed in internal/forge.
func forgeTable() []forgeEntry {
	return []forgeEntry{
		{GitHub, "GitHub", []string{"github.com"}, []string{"github."}, "/blob/{commit}/{path}#L{line}", "/compare/", false},
		{GitLab, "GitLab", []string{"gitlab.com"}, []string{"gitlab."}, "/-/blob/{commit}/{path}#L{line}", "/-/compare/", true},
		{Gitea, "Forgejo and Gitea", []string{"codeberg.org", "gitea.com"}, []string{"gitea.", "forgejo."}, "/src/commit/{commit}/{path}#L{line}", "/compare/", false},
		{Bitbucket, "Bitbucket", []string{"bitbucket.org"}, nil, "/src/{commit}/{path}#lines-{line}", "", false},
	}
}

// Forges returns the display names of the forges, in the order of the table.
func Forges() []string {
	var out []string
	for _, l := range forgeTable() {
		out = append(out, l.title)
	}
	return out
}

// PublicForge returns the forge of a public server, or "" for any other server.
func (r Remote) PublicForge() Forge {
	for _, l := range forgeTable() {
		if slices.Contains(l.public, r.hostname()) {
			return l.forge
		}
	}
	return ""
}

// guessForge returns the forge suggested by the name of a server, or the zero value. A guess is
// sufficient for links, but not for sending a token.
func (r Remote) guessForge() forgeEntry {
	public := r.PublicForge()
	for _, l := range forgeTable() {
		if slices.ContainsFunc(l.prefixes, func(s string) bool { return strings.HasPrefix(r.hostname(), s) }) {
			return l
		}
	}
	for _, l := range forgeTable() {
		if public == l.forge {
			return l
		}
	}
	return forgeEntry{}
}

// LinePattern returns the pattern of addresses of a line of a file, with {commit}, {path} and
// {line}, or "" for an unknown forge.
func (r Remote) LinePattern() string {
	if l := r.guessForge(); l.lines != "" {
		return r.Page() + l.lines
	}
	return ""
}

// Compare returns the address of the forge's comparison of two tags, or "" if unknown.
func (r Remote) Compare(a, b string) string {
	l, steps := r.guessForge(), strings.Count(r.Project, "/")
	if l.compare == "" || steps == 0 || steps > 1 && !l.nested {
		return ""
	}
	return r.Page() + l.compare + url.PathEscape(a) + "..." + url.PathEscape(b)
}

// hostname returns the host without its port.
func (r Remote) hostname() string { return r.Server().Hostname() }
