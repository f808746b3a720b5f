package cli_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
	"github.com/quayside/quayside/cmd/quayside/internal/parts"
	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/artifact"
	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/internal/testing/ocitest"
	"github.com/quayside/quayside/internal/testing/propertytest"
)

func TestMain(m *testing.M) {
	cli.Parts = parts.All()
	propertytest.FixSeed(1)
	clitest.Main(m, cli.Parts, map[string]func(){"tokens": func() { runHelper(readTokens) }})
}

// runHelper runs a helper program of the benchmarks. It exits with code 1 on an error.
func runHelper(run func(args []string) error) {
	if err := run(os.Args[1:]); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// TestScripts runs testdata/script/<command>_<case>.txtar. In addition to the commands of
// clitest.Scripts, the scripts have:
//
//	fixture name [dir]      copy a directory of the repository's testdata
//	build dir...            build the kustomizations in and below dirs
//	unpack layout tag dir   write the files of an artifact in an OCI layout into dir
//	renamed layout from to file
//	                        copy an artifact in an OCI layout, with the commit in file
//	alone program args...   run a program without a network, if permitted
//	told message            fail unless the last output contains message; … matches any text
//	forge kind              start a forge with seven pull requests, and set the variables of
//	                        its CI jobs
//
// $REGISTRY is a local registry that all scripts share.
//
// With -short, the scripts of pages are skipped.
func TestScripts(t *testing.T) {
	server := ocitest.New(t)
	files, err := filepath.Glob("testdata/script/*.txtar")
	check(t, err)
	if testing.Short() {
		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "pages_") })
	}
	clitest.Scripts(t, cli.Parts, goldentest.Update(), files, []string{"REGISTRY=" + server.Host}, map[string]clitest.Command{
		"fixture":  fixture,
		"build":    build,
		"unpack":   unpackArtifact,
		"renamed":  renamed,
		"told":     told,
		"alone":    alone,
		"forge":    forgeServer(t),
		"keypair":  keyPair(t),
		"cosign":   cosign(t),
		"sigstore": sigstore(t),
	})
}

func told(ts *testscript.TestScript, _ bool, args []string) {
	said := ts.ReadFile("stderr") + ts.ReadFile("stdout")
	rest := said
	for part := range strings.SplitSeq(args[0], "…") {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			ts.Fatalf("the output does not contain %q (no %q):\n%s", args[0], part, said)
		}
		rest = after
	}
}

func alone(ts *testscript.TestScript, _ bool, args []string) {
	if exec.Command("unshare", "-n", "true").Run() == nil {
		args = append([]string{"unshare", "-n"}, args...)
	}
	ts.Check(ts.Exec(args[0], args[1:]...))
}

func fixture(ts *testscript.TestScript, _ bool, args []string) {
	to := args[0]
	if len(args) > 1 {
		to = args[1]
	}
	clitest.CopyInto(ts, filepath.Join("../../../../testdata", args[0]), to)
}

// build builds every kustomization in the directories in args.
func build(ts *testscript.TestScript, _ bool, args []string) {
	for _, arg := range args {
		dirs, err := kustomizations(ts.MkAbs(arg))
		ts.Check(err)
		if len(dirs) == 0 {
			ts.Fatalf("no kustomization in or below %s", arg)
		}
		for _, dir := range dirs {
			if _, err := kustomizeLibrary(dir); err != nil {
				ts.Fatalf("%s: %v", dir, err)
			}
		}
	}
}

func unpackArtifact(ts *testscript.TestScript, _ bool, args []string) {
	got, err := artifact.Open(context.Background(), new(oci.Client), "oci:"+ts.MkAbs(args[0])+":"+args[1], nil)
	ts.Check(err)
	ts.Check(os.CopyFS(ts.MkAbs(args[2]), got.Files.FS()))
}

func renamed(ts *testscript.TestScript, _ bool, args []string) {
	layout := ts.MkAbs(args[0])
	got, err := artifact.Open(context.Background(), new(oci.Client), "oci:"+layout+":"+args[1], nil)
	ts.Check(err)
	got.Meta.Revision = "main@sha1:" + strings.TrimSpace(ts.ReadFile(args[3]))
	packed, err := artifact.Pack(got.Files.FS(), got.Meta)
	ts.Check(err)
	ts.Check(packed.WriteLayout(layout, args[2]))
}

// kustomizations returns the directories in and below dir with a kustomization, sorted.
func kustomizations(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "kustomization.yaml" {
			out = append(out, filepath.Dir(path))
		}
		return err
	})
	slices.Sort(out)
	return out, err
}
