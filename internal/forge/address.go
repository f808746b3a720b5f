package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/remote"
)

// Address identifies a repository on a forge.
type Address struct {
	Kind    string // one of [Kinds], such as "github"
	API     string // address of the API, such as "https://api.github.com"
	Project string // path such as "acme/fleet"; on GitLab, groups can be nested
}

// Locate returns the Address of a Git remote. kind is one of [Kinds]. If kind is empty, Locate derives it from
// the host name of a public server, or from the variables of a CI job, which it reads with getenv. If the
// remote is not the address of a server, Locate returns the repository of the CI job.
func Locate(kind, repository string, getenv func(string) string) (Address, error) {
	at, known := remote.Parse(repository)
	for _, a := range remote.APIs() {
		jobServer, api, jobProject := a.Job(getenv)
		if api == "" || jobProject == "" || kind != "" && kind != string(a.Forge) {
			continue
		}
		job, err := url.Parse(jobServer)
		switch {
		case err != nil:
			return Address{}, errors.New("the CI job's variables contain no server address")
		case !known:
			return Address{string(a.Forge), strings.TrimRight(api, "/"), jobProject}, nil
		case strings.EqualFold(at.Server().Hostname(), job.Hostname()):
			return Address{string(a.Forge), strings.TrimRight(api, "/"), serverPath(job, at.Project)}, nil
		}
	}
	if !known {
		return Address{}, fmt.Errorf("%s is not a server address: --pull-request needs a GitHub, GitLab or Gitea remote", diag.Redact(repository))
	}
	for _, a := range remote.APIs() {
		public := at.PublicForge() == a.Forge
		if kind != string(a.Forge) && (kind != "" || !public) {
			continue
		}
		if !strings.Contains(at.Project, "/") {
			return Address{}, fmt.Errorf("%s contains no repository", diag.Redact(repository))
		}
		api := at.Server().JoinPath(a.Path).String()
		if a.Public != "" && public {
			api = a.Public
		}
		return Address{string(a.Forge), api, at.Project}, nil
	}
	return Address{}, fmt.Errorf("unknown forge at %s: set --forge to %s", at.Host, strings.Join(Kinds(), ", "))
}

// serverPath returns the path of a repository below the URL of its server.
func serverPath(server *url.URL, project string) string {
	return strings.TrimPrefix(project, strings.Trim(server.Path, "/")+"/")
}
