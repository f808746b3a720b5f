package cli_test

import (
	"fmt"
	"os/exec"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize builds one directory as a user would: with kubectl where there is
// one, else with the library that kubectl is made of.
func kustomize(dir string) ([]byte, error) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return kustomizeLibrary(dir)
	}
	out, err := exec.Command(kubectl, "kustomize", dir).Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
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
