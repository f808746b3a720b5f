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

// Credentials looks up the user's logins to registries. A nil *Credentials means anonymous access.
type Credentials struct {
	// Files are files in the format of docker's config.json, which may name credential helpers.
	// Missing files are skipped. The first file with a login for the repository, a parent path or
	// the registry is used.
	Files []string
}

// DefaultCredentials returns the credentials files of podman and docker, as configured in the
// environment: $REGISTRY_AUTH_FILE, $XDG_RUNTIME_DIR/containers/auth.json,
// $XDG_CONFIG_HOME/containers/auth.json (default ~/.config) and $DOCKER_CONFIG/config.json (default
// ~/.docker).
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

// DefaultCertDirs returns the directories with certificates for registries that podman and docker
// use.
func DefaultCertDirs(getenv func(string) string) []string {
	dirs := []string{"/etc/docker/certs.d", "/etc/containers/certs.d"}
	if home := getenv("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".config", "containers", "certs.d"), filepath.Join(home, ".docker", "certs.d"))
	}
	return dirs
}

// credential is a login to a registry. It is empty for anonymous access. Never print a credential.
type credential struct {
	config authn.AuthConfig
	origin string // file that contains the login, for messages
	note   string // reason why a configured login could not be read
}

func (c credential) found() bool { return c.origin != "" }

// account is a repository and the login for this repository.
type account struct {
	repo  name.Repository
	login credential
}

// find returns the login for a repository. If a file or a helper fails, find returns an anonymous
// login with a note. If the registry then denies access, the error contains the note.
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
			login.ServerAddress = "" // GetAuthConfig sets it even without a login
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

// helperFault describes the failure of a credential helper, without its output, which may contain
// secrets.
func helperFault(file *configfile.ConfigFile, key string, err error) string {
	program := "docker-credential-" + cmp.Or(file.CredentialHelpers[key], file.CredentialsStore)
	if strings.Contains(err.Error(), "executable file not found") { // compare the text: the library does not wrap the error of os/exec
		return "is not installed: no " + program + " on the PATH"
	}
	return "failed (" + program + ")"
}

// readLogins reads a credentials file. It returns nil if the file does not exist. Errors do not
// contain any content of the file.
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

// loginKeys returns the keys under which a file may have the login for a repository, most specific
// first. podman also uses repositories and parent paths as keys.
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
