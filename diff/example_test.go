package diff_test

import (
	"fmt"
	"log"

	"github.com/quayside/quayside/diff"
)

// Compare two trees of rendered files.
func Example() {
	tree := func(replicas int) []diff.File {
		return []diff.File{{Path: "deployment.yaml", Data: fmt.Appendf(nil, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: ops}\nspec: {replicas: %d, template: {spec: {containers: [{name: app, image: quay.io/org/app:1}]}}}\n", replicas)}}
	}
	before, after, err := diff.Read(diff.Input{Name: "before", Tree: tree(1)}, diff.Input{Name: "after", Tree: tree(3)})
	if err != nil {
		log.Fatal(err)
	}
	report, err := diff.Compare(before, after, diff.CompareOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range report.Findings {
		fmt.Printf("%s %s %s: %s → %s\n", f.Severity, f.Rule, f.Object, f.Before, f.After)
	}
	// Output: info pods.replicas Deployment ops/app: 1 → 3
}
