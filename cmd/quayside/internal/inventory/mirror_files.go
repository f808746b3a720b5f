package inventory

import (
	"fmt"
	"path"
	"strings"

	"github.com/quayside/quayside/internal/yamlnode"
)

// NewMirrorFiles returns the configuration files, by path, that make clusters pull the copies. The base name of
// file selects the format. registries.yaml is for k3s and RKE2. certs.d is a directory for containerd, with a
// hosts.toml for each registry. Any other name is a file with mirror sets (see NewMirrorSets). spec.mirrors of
// quayside.yaml accepts each of these files.
func NewMirrorFiles(file string, copies []ImageCopy) (map[string][]byte, error) {
	switch file {
	case "registries.yaml":
		data, err := newK3sRegistries(copies)
		return map[string][]byte{file: data}, err
	case "certs.d":
		out := map[string][]byte{}
		for registry, base := range mirroredRegistries(copies) {
			out[path.Join(file, registry, "hosts.toml")] = newContainerdHosts(registry, base)
		}
		return out, nil
	}
	data, err := NewMirrorSets(copies)
	return map[string][]byte{file: data}, err
}

// mirroredRegistries maps each original registry to the location of its copies: for example
// "quay.io" to "registry.example.com/mirror".
func mirroredRegistries(copies []ImageCopy) map[string]string {
	out := map[string]string{}
	for _, c := range copies {
		if registry, rest, ok := strings.Cut(c.source, "/"); ok {
			out[registry] = strings.TrimSuffix(c.target, "/"+rest)
		}
	}
	return out
}

// newK3sRegistries returns a registries.yaml of k3s and RKE2.
func newK3sRegistries(copies []ImageCopy) ([]byte, error) {
	mirrors := map[string]any{}
	for registry, base := range mirroredRegistries(copies) {
		host, dir, below := strings.Cut(base, "/")
		mirror := map[string]any{"endpoint": []string{"https://" + host}}
		if below {
			mirror["rewrite"] = map[string]string{"^(.*)": dir + "/$1"}
		}
		mirrors[registry] = mirror
	}
	return yamlnode.Marshal(map[string]any{"mirrors": mirrors})
}

// newContainerdHosts returns the hosts.toml of containerd for a registry whose copies are at base.
func newContainerdHosts(registry, base string) []byte {
	server := registry
	if server == "docker.io" {
		server = "registry-1.docker.io"
	}
	text := fmt.Sprintf("server = %q\n\n", "https://"+server)
	host, dir, below := strings.Cut(base, "/")
	address, override := "https://"+host, ""
	if below {
		address, override = address+"/v2/"+dir, "override_path = true\n"
	}
	return []byte(text + fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n%s", address, override))
}
