package forge

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/remote"
)

// Address is a repository of a forge.
type Address struct {
	Kind    string // "github", one of [Kinds]
	API     string // "https://api.github.com"
	Project string // "acme/fleet"; GitLab has groups in groups
}

// Locate returns the address of the repository behind a Git remote. kind is one of
// [Kinds]; if it is empty, Locate derives it from the host name of a public server or from the
// variables of a CI job, which getenv returns. For a remote that is not a server address, it
// returns the repository of the job.
func Locate(kind, repository string, getenv func(string) string) (Address, error) {
	at, known := remote.Parse(repository)
	for _, k := range forgeKinds() {
		jobServer, api, jobProject := k.ci(getenv)
		if api == "" || jobProject == "" || kind != "" && kind != k.name {
			continue
		}
		job, err := url.Parse(jobServer)
		switch {
		case err != nil:
			return Address{}, errors.New("the CI job's variables contain no server address")
		case !known:
			return Address{k.name, strings.TrimRight(api, "/"), jobProject}, nil
		case strings.EqualFold(at.Server().Hostname(), job.Hostname()):
			return Address{k.name, strings.TrimRight(api, "/"), serverPath(job, at.Project)}, nil
		}
	}
	if !known {
		return Address{}, fmt.Errorf("%s is not a server address: --pull-request needs a GitHub, GitLab or Gitea remote", diag.Redact(repository))
	}
	for _, k := range forgeKinds() {
		if kind != k.name && (kind != "" || at.PublicForge() != remote.Forge(k.name)) {
			continue
		}
		if !strings.Contains(at.Project, "/") {
			return Address{}, fmt.Errorf("%s contains no repository", diag.Redact(repository))
		}
		api := at.Server().JoinPath(k.api).String()
		if k.publicAPI != "" && at.PublicForge() == remote.Forge(k.name) {
			api = k.publicAPI
		}
		return Address{k.name, api, at.Project}, nil
	}
	return Address{}, fmt.Errorf("unknown forge at %s: set --forge to %s", at.Host, strings.Join(Kinds(), ", "))
}

// serverPath returns a repository's path without the path prefix of the server's URL.
func serverPath(server *url.URL, project string) string {
	return strings.TrimPrefix(project, strings.Trim(server.Path, "/")+"/")
}
