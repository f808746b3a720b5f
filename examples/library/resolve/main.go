// Command resolve resolves declarations with a directory of bundles, and renders the lock, in memory.
package main

import (
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
	"github.com/quayside/quayside/resolve"
)

func main() {
	declarations, bundles := os.DirFS(os.Args[1]), os.DirFS(os.Args[2])
	content := must(bundledir.LoadFS(bundles))
	content.ID = catalog.ID{Namespace: "olm", Name: "quickstart"}
	index := must(catalog.NewIndex(must(catalog.New(content))))
	set := must(declare.LoadFS(declarations, declare.LoadOptions{}))
	res := must(resolve.Resolve(index, set, nil, resolve.Options{KubernetesVersion: "1.34"}))
	fmt.Printf("%s", lockfile.Format(res.Lock))
	tree := must(render.All(res.Lock, render.Options{}, func(pin lockfile.Pin) (fs.FS, error) {
		return bundledir.Find(bundles, pin.Package, pin.Bundle)
	}))
	for _, o := range tree.Objects {
		fmt.Println(o.Path)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err) // a line for each fault, with its position
	}
	return value
}
