package registry

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

// Credentials says where the user's logins are. A nil one is anonymous.
type Credentials struct {
	// Files are read in order, in the format of docker's config.json, with its
	// credential helpers; one that is missing is passed over. The first that
	// knows the repository, or a part of its path, or its host, wins.
	Files []string
}

// DefaultCredentials returns the files in which podman and docker keep logins,
// as the environment that getenv shows names them: $REGISTRY_AUTH_FILE,
// $XDG_RUNTIME_DIR/containers/auth.json, $XDG_CONFIG_HOME/containers/auth.json
// (default ~/.config), $DOCKER_CONFIG/config.json (default ~/.docker).
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

// DefaultCertDirs returns the directories in which podman and docker look for
// certificates of registries.
func DefaultCertDirs(getenv func(string) string) []string {
	dirs := []string{"/etc/docker/certs.d", "/etc/containers/certs.d"}
	if home := getenv("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".config", "containers", "certs.d"), filepath.Join(home, ".docker", "certs.d"))
	}
	return dirs
}

// credential is a login, or the lack of one. It is never printed.
type credential struct {
	config authn.AuthConfig
	origin string // the file it was found in
	note   string // why one that might be there could not be read
}

func (c credential) found() bool { return c.origin != "" }

// find returns the login for a repository. A file or helper that fails does
// not stop an anonymous attempt; the note tells of it where that is refused.
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
			login.ServerAddress = "" // filled in whether there is a login or not
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

// helperFault says what is wrong with the helper that keeps a login. What it printed
// is not told, for that may be a secret.
func helperFault(file *configfile.ConfigFile, key string, err error) string {
	program := "docker-credential-" + cmp.Or(file.CredentialHelpers[key], file.CredentialsStore)
	if strings.Contains(err.Error(), "executable file not found") { // by os/exec; the chain of errors is cut on the way
		return "is missing: there is no " + program + " on the PATH"
	}
	return "failed (" + program + ")"
}

// readLogins returns nil where there is no such file. Its errors tell nothing
// of the file's content.
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
		return nil, fmt.Errorf("the credentials file %s could not be read as docker's config.json", path)
	}
	return file, nil
}

// loginKeys returns the names under which a login may be kept, the most
// specific first: podman keeps them by repository and path too.
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
