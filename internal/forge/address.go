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

// Locate returns where the repository is that Git knows by a remote. kind
// is what somebody said of it, one of [Kinds], or empty: then a public server says
// it, or the job of the server's own CI, whose variables getenv returns. A remote that
// is no address of a server is the repository of the job.
func Locate(kind, repository string, getenv func(string) string) (Address, error) {
	at, known := remote.Parse(repository)
	for _, k := range kinds() {
		jobServer, api, jobProject := k.ci(getenv)
		if api == "" || jobProject == "" || kind != "" && kind != k.name {
			continue
		}
		job, err := url.Parse(jobServer)
		switch {
		case err != nil:
			return Address{}, errors.New("the job's variables hold no address of a server")
		case !known:
			return Address{k.name, strings.TrimRight(api, "/"), jobProject}, nil
		case strings.EqualFold(at.Server().Hostname(), job.Hostname()):
			return Address{k.name, strings.TrimRight(api, "/"), below(job, at.Project)}, nil
		}
	}
	if !known {
		return Address{}, fmt.Errorf("%s is no address of a server: pull requests need a remote on one", diag.Redact(repository))
	}
	for _, k := range kinds() {
		if kind != k.name && (kind != "" || at.Public() != remote.Forge(k.name)) {
			continue
		}
		if !strings.Contains(at.Project, "/") {
			return Address{}, fmt.Errorf("%s names no repository", diag.Redact(repository))
		}
		api := at.Server().JoinPath(k.api).String()
		if k.name == "github" && at.Public() == remote.GitHub {
			api = "https://api.github.com"
		}
		return Address{k.name, api, at.Project}, nil
	}
	return Address{}, fmt.Errorf("which forge is at %s? --forge says it: %s", at.Host, strings.Join(Kinds(), ", "))
}

// below returns a repository's path without that of a server that is not at the
// top of its host.
func below(server *url.URL, project string) string {
	return strings.TrimPrefix(project, strings.Trim(server.Path, "/")+"/")
}
