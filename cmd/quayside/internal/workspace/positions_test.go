package workspace_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/settings"
	"github.com/quayside/quayside/lockfile"
)

// positionCase is a message with the position of a declaration. The fields v0, v1 and own have a
// declaration in each dialect that causes the message. A ‸ marks the expected position.
type positionCase struct {
	message string
	files   map[string]string // other files of the workspace
	read    func(*workspace.Project) []*diag.Error

	v0, v1, own string // own is quayside.yaml if it has that header; empty if the dialect cannot cause the message
}

const (
	workspaceHead = "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\nspec:\n  declarations: [subscriptions]\n"
	v0Head        = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\n"
	v1Head        = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterExtension\n"
	ownHead       = "apiVersion: quayside.dev/v1alpha1\nkind: Subscription\n"
)

func positionCases(t *testing.T) []positionCase {
	const (
		sourceHead  = "apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: hub, namespace: olm}\n"
		catalogHead = "apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: hub}\n"
		image       = "registry.example.com/hub:v1"
		v0Sub       = v0Head + "metadata: {name: a, namespace: ops}\nspec: {name: a, source: hub, sourceNamespace: olm}\n---\n"
		v1Sub       = v1Head + "metadata: {name: a}\nspec: {namespace: ops, source: {sourceType: Catalog, catalog: {packageName: a}}}\n---\n"
		etcd        = ownHead + "metadata: {name: a}\nspec: {bundle: \"dir:bundle\"}\n---\n"
		hubOf       = "name: a, source: hub, sourceNamespace: olm"
	)
	bundle := filesBelow(t, "catalog-src/etcd/0.9.0", "bundle")
	odd := filesBelow(t, "catalog-src/etcd/0.9.0", "bundle")
	odd["bundle/metadata/properties.yaml"] = "properties: [{type: olm.gvk, value: text}]\n"
	unreachable := positionCase{
		v0:  v0Sub + sourceHead + "spec: {sourceType: grpc, image: ‸" + image + "}\n",
		v1:  v1Sub + catalogHead + "spec: {source: {type: Image, image: {ref: ‸" + image + "}}}\n",
		own: workspaceHead + "  catalogs: [{name: hub, namespace: olm, source: ‸\"image:" + image + "\"}]\n",
	}
	withMessage := func(p positionCase, says string, read func(*workspace.Project) []*diag.Error) positionCase {
		p.message, p.read = says, read
		return p
	}
	return []positionCase{
		withMessage(unreachable, `hub": `, catalogFaults),
		withMessage(unreachable, `hub" is omitted: `, vendorFaults),
		{
			message: "it is served at hub:50051, which is reachable only from inside a cluster", read: catalogFaults,
			v0: v0Sub + sourceHead + "spec: {sourceType: grpc, address: ‸\"hub:50051\"}\n",
		},
		{
			message: `bundle "`, read: inputFaults,
			v1:  v1Head + "metadata: {name: a}\nspec: {namespace: ops, source: {sourceType: OCIImage, ociImage: {ref: ‸registry.example.com/a:v1}}}\n",
			own: ownHead + "metadata: {name: a}\nspec: {bundle: ‸\"image:registry.example.com/a:v1\"}\n",
		},
		{
			message: "expected a directory with one bundle", read: inputFaults, files: filesBelow(t, "catalog-src/etcd", "bundle"),
			own: ownHead + "metadata: {name: a, namespace: ops}\nspec:\n  bundle: ‸dir:bundle\n",
		},
		{
			message: "the source is a catalog", read: inputFaults, files: filesBelow(t, "catalog", "hub"),
			own: ownHead + "metadata: {name: a, namespace: ops}\nspec:\n  bundle: ‸oci:hub\n",
		},
		{
			message: "olm.gvk", read: inputFaults, files: odd,
			own: ownHead + "metadata: {name: a, namespace: ops}\nspec: {bundle: ‸\"dir:bundle\"}\n",
		},
		{
			message: `subscription "etcd/a" is declared twice, first at subscriptions/d.yaml:1:1`, read: inputFaults, files: bundle,
			v0:  etcd + "‸" + v0Head + "metadata: {name: a, namespace: etcd}\nspec: {" + hubOf + "}\n",
			v1:  etcd + "‸" + v1Head + "metadata: {name: a}\nspec: {namespace: etcd, source: {sourceType: Catalog, catalog: {packageName: a}}}\n",
			own: etcd + "‸" + ownHead + "metadata: {name: a, namespace: etcd}\nspec: {package: a}\n",
		},
	}
}

// filesBelow returns the files in a directory of the quickstart, with the directory renamed to as.
func filesBelow(t *testing.T, dir, as string) map[string]string {
	out := map[string]string{}
	for name, f := range quickstartFiles(t, nil) {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok {
			out[as+"/"+rest] = string(f.Data)
		}
	}
	return out
}

// inputFaults returns the faults of reading the inputs of a resolution.
func inputFaults(p *workspace.Project) []*diag.Error {
	_, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions()})
	return faultsOf(err)
}

func faultsOf(err error) []*diag.Error {
	var list diag.List
	var one *diag.Error
	switch {
	case errors.As(err, &list):
		return list
	case errors.As(err, &one):
		return []*diag.Error{one}
	}
	return nil
}

// catalogFaults returns the faults of the catalogs.
func catalogFaults(p *workspace.Project) []*diag.Error {
	in, err := workspace.ReadProblem(context.Background(), p, workspace.Request{Options: p.ResolveOptions()})
	if err != nil {
		return faultsOf(err)
	}
	_, err = p.BrokenCatalogs(in.Index)
	return faultsOf(err)
}

// vendorFaults returns the faults and warnings of listing the images to vendor.
func vendorFaults(p *workspace.Project) []*diag.Error {
	_, warnings, err := p.ImagesToVendor(context.Background(), &lockfile.File{}, workspace.VendorOptions{})
	out := faultsOf(err)
	for _, w := range warnings {
		out = append(out, &diag.Error{Pos: w.Pos, Msg: w.Msg})
	}
	return out
}

// TestPositions checks the positions of messages about declarations, in every dialect.
func TestPositions(t *testing.T) {
	for _, p := range positionCases(t) {
		for dialect, text := range map[string]string{"v0": p.v0, "v1": p.v1, "own": p.own} {
			if text != "" {
				t.Run(p.message+"/"+dialect, func(t *testing.T) { p.check(t, text) })
			}
		}
	}
}

func (p positionCase) check(t *testing.T, text string) {
	before, after, found := strings.Cut(text, "‸")
	if !found {
		t.Fatal("nothing is marked")
	}
	name := "subscriptions/d.yaml"
	files := fstest.MapFS{settings.FileName: {Data: []byte(workspaceHead)}}
	if strings.HasPrefix(text, workspaceHead) {
		name = settings.FileName
	}
	files[name] = &fstest.MapFile{Data: []byte(before + after)}
	if name == settings.FileName {
		files["subscriptions/d.yaml"] = &fstest.MapFile{Data: []byte(ownHead + "metadata: {name: a, namespace: ops}\nspec: {package: a}\n")}
	}
	for name, data := range p.files {
		files[name] = &fstest.MapFile{Data: []byte(data)}
	}
	opened, err := workspace.Open(workspace.Files(files, "", "."), env(t))
	check(t, err)
	want := diag.Pos{File: name, Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndex(before, "\n")}
	faults := p.read(opened)
	if !slices.ContainsFunc(faults, func(f *diag.Error) bool { return f.Pos == want && strings.Contains(f.Error(), p.message) }) {
		t.Errorf("want %q at %s, got %v, in\n%s", p.message, want, faults, text)
	}
}
