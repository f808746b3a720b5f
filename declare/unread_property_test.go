package declare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
)

// brokenRepository draws a repository with operators in directories of several layouts. readable and broken are
// the names of the operators whose declarations can and cannot be read.
func brokenRepository(t *rapid.T) (fsys fstest.MapFS, readable, broken []string) {
	fsys = fstest.MapFS{}
	for i := range rapid.IntRange(1, 8).Draw(t, "operators") {
		name := fmt.Sprintf("op%d-x", i)
		dir := rapid.SampledFrom([]string{"d/", "d/my ops/", "d/a/b/"}).Draw(t, "dir") + name
		object := strings.NewReplacer("NAME", name).Replace("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: NAME, namespace: ops}\nspec: {name: NAME, channel: stable, source: hub, sourceNamespace: olm}\n")
		kustomization := "resources: [s.yaml]\n"
		isBroken := true
		switch kind := rapid.SampledFrom([]string{"fine", "fine", "field", "yaml", "other document", "remote", "missing", "remote alone", "ksops", "unmatched", "overlay"}).Draw(t, "kind"); kind {
		case "fine":
			isBroken = false
			if rapid.Bool().Draw(t, "plain") {
				kustomization = ""
			}
		case "field":
			object = strings.Replace(object, "channel:", "chanel:", 1)
			if rapid.Bool().Draw(t, "plain") {
				kustomization = ""
			}
		case "yaml":
			object += "x: [\n"
			if rapid.Bool().Draw(t, "plain") {
				kustomization = ""
			}
		case "other document": // only the other one is unread
			object += "---\n" + strings.NewReplacer(name, name+"-other", "channel:", "chanel:").Replace(object)
			kustomization, isBroken = "", false
			broken = append(broken, name+"-other")
		case "remote":
			kustomization = "resources: [s.yaml, 'https://example.com/x?ref=1']\n"
		case "missing":
			kustomization = "resources: [s.yaml, missing.yaml]\n"
		case "remote alone":
			object, kustomization, isBroken = "", "resources: ['https://github.com/org/catalog/"+name+"-operator?ref=1']\n", true
		case "ksops":
			kustomization, isBroken = kustomization+"generators: [g.yaml]\n", false
			fsys[dir+"/g.yaml"] = text("apiVersion: viaduct.ai/v1\nkind: ksops\nmetadata: {name: g}\nfiles: [x.yaml]\n")
		case "unmatched":
			kustomization, isBroken = kustomization+"patches: [{target: {kind: None}, patch: '- {op: remove, path: /spec}'}]\n", false
		case "overlay": // the base must not be read instead
			fsys[dir+"/overlay/kustomization.yaml"] = text("resources: [.., missing.yaml]\n")
		}
		if kustomization != "" {
			fsys[dir+"/kustomization.yaml"] = text(kustomization)
		}
		if object != "" {
			fsys[dir+"/s.yaml"] = text(object)
		}
		if isBroken {
			broken = append(broken, name)
		} else {
			readable = append(readable, name)
		}
	}
	return fsys, readable, broken
}

// TestFaultsStayLocal checks that a fault affects only operators that need the faulty file. Each affected
// operator must be covered by an element of Set.Unread.
func TestFaultsStayLocal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys, readable, broken := brokenRepository(t)
		set, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths("d")})
		if (err != nil) != (len(broken) > 0) {
			t.Fatalf("%d broken operators, but the error is %v", len(broken), err)
		}
		var read []string
		for _, s := range set.Subscriptions {
			read = append(read, s.Name)
		}
		slices.Sort(readable)
		slices.Sort(read)
		if !slices.Equal(read, readable) {
			t.Fatalf("read %v, want %v", read, readable)
		}
		for _, name := range broken {
			if !slices.ContainsFunc(set.Unread, func(u declare.Unread) bool { return !u.Tolerated && u.MayDeclare("ops", name, name) }) {
				t.Fatalf("%s is lost: %v", name, set.Unread)
			}
		}
		again, againErr := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths("d")})
		if fmt.Sprint(err, set.Warnings) != fmt.Sprint(againErr, again.Warnings) {
			t.Fatal("two runs differ")
		}
	})
}
