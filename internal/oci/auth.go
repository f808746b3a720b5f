package oci

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// Credentials finds the user's logins. A nil *Credentials means anonymous access.
type Credentials struct {
	// Files are read in order, in the format of docker's config.json,
	// including its credential helpers. Missing files are skipped. The first
	// file with a login for the repository, a parent path or the host wins.
	Files []string
}

// DefaultCredentials returns the login files of podman and docker according
// to the environment: $REGISTRY_AUTH_FILE,
// $XDG_RUNTIME_DIR/containers/auth.json,
// $XDG_CONFIG_HOME/containers/auth.json (default ~/.config),
// $DOCKER_CONFIG/config.json (default ~/.docker).
func DefaultCredentials(getenv func(string) string) *Credentials {
	c := &Credentials{}
	add := func(dir string, rest ...string) {
		if dir != "" {
			c.Files = append(c.Files, filepath.Join(append([]string{dir}, rest...)...))
		}
	}
	home := getenv("HOME")
	add(getenv("REGISTRY_AUTH_FILE"))
	add(getenv("XDG_RUNTIME_DIR"), "containers", "auth.json")
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		add(dir, "containers", "auth.json")
	} else {
		add(home, ".config", "containers", "auth.json")
	}
	if dir := getenv("DOCKER_CONFIG"); dir != "" {
		add(dir, "config.json")
	} else {
		add(home, ".docker", "config.json")
	}
	return c
}

// DefaultCertDirs returns the directories of podman and docker for registry
// certificates.
func DefaultCertDirs(getenv func(string) string) []string {
	dirs := []string{"/etc/docker/certs.d", "/etc/containers/certs.d"}
	if home := getenv("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".config", "containers", "certs.d"), filepath.Join(home, ".docker", "certs.d"))
	}
	return dirs
}

// credential is a login, possibly empty. It must never be printed.
type credential struct {
	config authn.AuthConfig
	origin string // file with the login
	note   string // error while reading a possible login
}

func (c credential) found() bool { return c.origin != "" }

// account is a repository and its login.
type account struct {
	repo  name.Repository
	login credential
}

// find returns the login for a repository. If a file or helper fails, it returns an anonymous
// login with a note, which explains a later denial by the registry.
func (c *Credentials) find(repo name.Repository) credential {
	var none credential
	if c == nil {
		return none
	}
	for _, path := range c.Files {
		file, err := readLogins(path)
		if err != nil {
			none.note = err.Error()
			continue
		}
		if file == nil {
			continue
		}
		for _, key := range loginKeys(repo) {
			login, err := file.GetAuthConfig(key)
			if err != nil {
				none.note = fmt.Sprintf("the credential helper named in %s for %s %s", path, repo.RegistryStr(), helperFault(file, key, err))
				continue
			}
			login.ServerAddress = "" // this field is also set without a login
			if login != (types.AuthConfig{}) {
				return credential{origin: path, config: authn.AuthConfig{
					Username: login.Username, Password: login.Password, Auth: login.Auth,
					IdentityToken: login.IdentityToken, RegistryToken: login.RegistryToken,
				}}
			}
		}
	}
	return none
}

// helperFault describes the failure of a credential helper. It omits the
// output of the helper, which may be secret.
func helperFault(file *configfile.ConfigFile, key string, err error) string {
	program := "docker-credential-" + cmp.Or(file.CredentialHelpers[key], file.CredentialsStore)
	if strings.Contains(err.Error(), "executable file not found") { // the library does not wrap the error of os/exec
		return "is not installed: no " + program + " on the PATH"
	}
	return "failed (" + program + ")"
}

// readLogins reads a file with logins, or returns nil if it does not exist. Its errors do not
// contain file content.
func readLogins(path string) (*configfile.ConfigFile, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented above
	}
	if err != nil {
		return nil, fmt.Errorf("the credentials file %s could not be opened", path)
	}
	defer f.Close()
	file, err := config.LoadFromReader(f)
	if err != nil {
		return nil, fmt.Errorf("the credentials file %s is not a valid Docker config.json", path)
	}
	return file, nil
}

// loginKeys returns the possible keys of a login, the most specific first.
// podman also uses repositories and parent paths.
func loginKeys(repo name.Repository) []string {
	hosts := []string{repo.RegistryStr()}
	if repo.RegistryStr() == name.DefaultRegistry {
		hosts = []string{"docker.io", name.DefaultRegistry}
	}
	var keys []string
	for part := repo.RepositoryStr(); part != "."; part = path.Dir(part) {
		for _, host := range hosts {
			keys = append(keys, host+"/"+part)
		}
	}
	keys = append(keys, hosts...)
	if repo.RegistryStr() == name.DefaultRegistry {
		keys = append(keys, authn.DefaultAuthKey)
	}
	return keys
}
