// Command compare prints the findings between two trees of manifests, such as rendered/operators.
package main

import (
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/quayside/quayside/diff"
)

func main() {
	before, after, err := diff.Read(read(os.Args[1]), read(os.Args[2]))
	if err != nil {
		log.Fatal(err) // a line for each fault, with its position
	}
	report, err := diff.Compare(before, after, diff.CompareOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		fmt.Println(f.Severity, f.Rule, f.Object, f.Message)
	}
}

func read(dir string) diff.Input {
	in, files := diff.Input{Name: dir}, os.DirFS(dir)
	if err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "kustomization.yaml" {
			return err
		}
		data, err := fs.ReadFile(files, name)
		in.Tree = append(in.Tree, diff.File{Path: name, Data: data})
		return err
	}); err != nil {
		log.Fatal(err)
	}
	return in
}
