// Package remote parses Git remotes, and builds the URLs of lines of files on a forge. It sends no
// requests.
//
// Start from [Parse], and for URLs from [NewLineLinks] or [ParseLinks].
package remote

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Remote is a repository on a server.
type Remote struct {
	Scheme  string // scheme of the web pages: "http" for an http remote, otherwise "https"
	Host    string // host of the web pages in lower case, with any non-default port: "github.com", "git.example.com:3000"
	Project string // path of the repository without ".git", such as "acme/fleet"; may be empty
}

// Parse parses a Git remote: a URL, or user@host:path. It returns false for a local path and for a server
// without web pages. It ignores the user and, in an ssh remote, the port.
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

// bracketHost returns a host as used in a URL: an IPv6 address has brackets.
func bracketHost(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Server returns the URL of the server's web pages.
func (r Remote) Server() *url.URL { return &url.URL{Scheme: r.Scheme, Host: r.Host} }

// Page returns the URL of the repository's web page.
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
	lines    string   // suffix of the repository's URL for a line of a file
	compare  string   // suffix of the repository's URL for comparing two tags; empty: unknown
	nested   bool     // whether groups can contain groups
	api      API      // zero: pull requests are not supported
}

// API describes the API of a forge.
type API struct {
	Forge   Forge
	Dialect Forge  // forge with the same API requests
	Path    string // path of the API on a server
	Public  string // URL of the API of the public server, if it is on another host

	// Job returns the server URL, API URL and repository from the variables of a CI job. It returns
	// empty strings if the process is not in a job of this forge.
	Job func(getenv func(string) string) (server, api, project string)
}

// forgeTable lists the known forges. quayside supports pull requests on the forges with an API: internal/forge
// contains the requests.
func forgeTable() []forgeEntry {
	return []forgeEntry{
		{GitHub, "GitHub", []string{"github.com"}, []string{"github."}, "/blob/{commit}/{path}#L{line}", "/compare/", false, API{GitHub, GitHub, "api/v3", "https://api.github.com", githubJob}},
		{GitLab, "GitLab", []string{"gitlab.com"}, []string{"gitlab."}, "/-/blob/{commit}/{path}#L{line}", "/-/compare/", true, API{GitLab, GitLab, "api/v4", "", gitlabJob}},
		{Gitea, "Forgejo and Gitea", []string{"codeberg.org", "gitea.com"}, []string{"gitea.", "forgejo."}, "/src/commit/{commit}/{path}#L{line}", "/compare/", false, API{Gitea, Gitea, giteaPath, "", giteaJob}},
		{Bitbucket, "Bitbucket", []string{"bitbucket.org"}, nil, "/src/{commit}/{path}#lines-{line}", "", false, API{}},
	}
}

// APIs returns the APIs of the forges that support pull requests, sorted by forge.
func APIs() []API {
	var out []API
	for _, l := range forgeTable() {
		if l.api.Forge != "" {
			out = append(out, l.api)
		}
	}
	slices.SortFunc(out, func(a, b API) int { return strings.Compare(string(a.Forge), string(b.Forge)) })
	return out
}

// giteaPath is the path of Gitea's API. It distinguishes jobs of Gitea and Forgejo from jobs of GitHub: the
// runners of all three set the same variables.
const giteaPath = "api/v1"

func githubJob(getenv func(string) string) (server, api, project string) {
	if isGiteaJob(getenv) {
		return "", "", ""
	}
	return getenv("GITHUB_SERVER_URL"), getenv("GITHUB_API_URL"), getenv("GITHUB_REPOSITORY")
}

func giteaJob(getenv func(string) string) (server, api, project string) {
	if !isGiteaJob(getenv) {
		return "", "", ""
	}
	return getenv("GITHUB_SERVER_URL"), getenv("GITHUB_API_URL"), getenv("GITHUB_REPOSITORY")
}

func isGiteaJob(getenv func(string) string) bool {
	return strings.HasSuffix(strings.TrimRight(getenv("GITHUB_API_URL"), "/"), "/"+giteaPath)
}

func gitlabJob(getenv func(string) string) (server, api, project string) {
	return getenv("CI_SERVER_URL"), getenv("CI_API_V4_URL"), getenv("CI_PROJECT_PATH")
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

// guessForge guesses the forge from the name of a server. It returns the zero value if the name gives no hint.
// A guess is sufficient for links, but not for sending a token.
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

// LinePattern returns the URL pattern for lines in files, with the placeholders {commit}, {path} and {line}. It
// returns "" for an unknown forge.
func (r Remote) LinePattern() string {
	if l := r.guessForge(); l.lines != "" {
		return r.Page() + l.lines
	}
	return ""
}

// Compare returns the URL of the page that compares the tags a and b, or "" for an unknown forge.
func (r Remote) Compare(a, b string) string {
	l, steps := r.guessForge(), strings.Count(r.Project, "/")
	if l.compare == "" || steps == 0 || steps > 1 && !l.nested {
		return ""
	}
	return r.Page() + l.compare + url.PathEscape(a) + "..." + url.PathEscape(b)
}

// hostname returns the host without its port.
func (r Remote) hostname() string { return r.Server().Hostname() }
