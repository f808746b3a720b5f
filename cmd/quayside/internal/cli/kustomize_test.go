package cli_test

import (
	"fmt"
	"os/exec"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize builds a directory with kubectl if it is installed, or else with kubectl's library.
func kustomize(dir string) ([]byte, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return kustomizeLibrary(dir)
	}
	out, err := exec.Command(kubectl, "kustomize", dir).Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output does not wrap it
		return nil, fmt.Errorf("kubectl kustomize: %s", exit.Stderr)
	}
	return out, err
}

func kustomizeLibrary(dir string) ([]byte, error) {
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, err
	}
	return res.AsYaml()
}
