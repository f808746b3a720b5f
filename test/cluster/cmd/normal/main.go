//go:build ignore

// Command normal reads a JSON list of Kubernetes objects, and prints the list of their normal forms. quayside
// compares objects in their normal form.
//
// The command uses internal packages of the main module, which this module cannot import. Tests therefore build
// the command in the main module, by its file name.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/k8s/admit"
	"github.com/quayside/quayside/internal/yamlnode"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var texts []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return err
	}
	types := admit.NewTypes()
	var out []k8s.Object
	for _, text := range texts {
		objects, err := yamlnode.Objects("object.json", text, yamlnode.Limits{})
		if err != nil {
			return err
		}
		out = append(out, types.Normal(objects[0]))
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
