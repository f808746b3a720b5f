package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/cmd/quayside/cli"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/registry/registrytest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv(raceOptions()) // for children
	testscript.Main(m, map[string]func(){
		"quayside": func() {
			var stdout bytes.Buffer
			code := cli.Main(os.Args[1:], os.Stdin, io.MultiWriter(os.Stdout, &stdout), os.Stderr, os.Environ())
			if err := cli.Conforms(os.Args[1:], stdout.Bytes()); err != nil {
				fmt.Fprintf(os.Stderr, "%q: %v\n", os.Args[1:], err)
				code = nonconforming
			}
			os.Exit(code)
		},
		"tokens": func() { ruler(readTokens) },
	})
}

// nonconforming is the exit code of a program that prints what its schema does
// not allow.
const nonconforming = 99

// raceOptions returns the variable that has a program with the race detector
// end when it ends. By default it waits for a second, in case a goroutine that
// nobody waited for is about to do something wrong; the tests run hundreds.
func raceOptions() (key, value string) {
	return "GORACE", cmp.Or(os.Getenv("GORACE"), "atexit_sleep_ms=10")
}

// ruler runs one of the programs that the benchmarks measure with.
func ruler(run func(args []string) error) {
	if err := run(os.Args[1:]); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// TestScripts runs testdata/script/<command>_<case>.txtar. Beside testscript's
// own commands there are:
//
//	code N program args...  run a program that must exit with N
//	quickstart              copy examples/quickstart into the work directory
//	fixture name [dir]      copy a directory of the repository's testdata
//	keep path...            remember files and directories
//	kept                    fail if what was remembered has changed
//	build dir...            build the kustomizations in and below dirs
//	unpack layout tag dir   write the files of an artifact in an OCI layout into dir
//	renamed layout from to file
//	                        give an artifact in an OCI layout the commit that a file names
//	alone program args...   run a program without a network, where that is allowed
//	steps file script       write the commands of a file in examples/ci into a script
//	fill file...            put the values of variables in the place of ${NAME}
//	cluster file...         start an API server that has these objects
//	olm file...             start one that is written to, with OLM and a garbage collector
//
// $REGISTRY is a registry on loopback, the same for all scripts.
func TestScripts(t *testing.T) {
	server := registrytest.New(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *cli.Update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("REGISTRY", server.Host)
			env.Setenv(raceOptions())
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":       code,
			"quickstart": func(ts *testscript.TestScript, _ bool, _ []string) { copyInto(ts, "../../../examples/quickstart", ".") },
			"fixture":    fixture,
			"keep":       keep,
			"kept":       kept,
			"build":      build,
			"unpack":     unpackArtifact,
			"renamed":    renamed,
			"fill":       fill,
			"alone":      alone,
			"steps":      steps,
			"cluster":    cluster(t),
			"olm":        installer(t),
			"keypair":    keyPair(t),
			"sigstore":   sigstore(t),
		},
	})
}

func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func alone(ts *testscript.TestScript, _ bool, args []string) {
	if exec.Command("unshare", "-n", "true").Run() == nil {
		args = append([]string{"unshare", "-n"}, args...)
	}
	ts.Check(ts.Exec(args[0], args[1:]...))
}

func fill(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o666))
	}
}

func fixture(ts *testscript.TestScript, _ bool, args []string) {
	to := args[0]
	if len(args) > 1 {
		to = args[1]
	}
	copyInto(ts, filepath.Join("../../../testdata", args[0]), to)
}

// copyInto copies a directory of the repository below the work directory.
func copyInto(ts *testscript.TestScript, from, to string) {
	// Scripts run in a directory of their own; the test process stays here.
	ts.Check(filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(ts.MkAbs(to), rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o666)
	}))
}

const keptFile = ".tmp/kept"

func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(keptFile), []byte(strings.Join(args, "\n")+"\n"+fingerprint(ts, args)), 0o666))
}

func kept(ts *testscript.TestScript, _ bool, _ []string) {
	data, err := os.ReadFile(ts.MkAbs(keptFile))
	ts.Check(err)
	names, want, _ := strings.Cut(string(data), "\n#\n")
	got := fingerprint(ts, strings.Split(names, "\n"))
	if _, got, _ = strings.Cut("\n"+got, "\n#\n"); got != want {
		ts.Fatalf("changed\nbefore:\n%s\nafter:\n%s", want, got)
	}
}

// fingerprint lists every file below names with its mode and content.
func fingerprint(ts *testscript.TestScript, names []string) string {
	var b bytes.Buffer
	b.WriteString("#\n")
	for _, name := range names {
		err := filepath.WalkDir(ts.MkAbs(name), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(&b, "%s absent\n", name)
				return nil
			}
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == ".tmp" || d.Name() == ".cache") {
				return fs.SkipDir // what the test itself and the store keep
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %v", path, info.Mode())
			if d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %q", data)
			}
			b.WriteByte('\n')
			return nil
		})
		ts.Check(err)
	}
	return b.String()
}

// build builds every kustomization in and below the directories named.
func build(ts *testscript.TestScript, _ bool, args []string) {
	for _, arg := range args {
		dirs, err := kustomizations(ts.MkAbs(arg))
		ts.Check(err)
		if len(dirs) == 0 {
			ts.Fatalf("no kustomization in or below %s", arg)
		}
		for _, dir := range dirs {
			if _, err := kustomize(dir); err != nil {
				ts.Fatalf("%s: %v", dir, err)
			}
		}
	}
}

func unpackArtifact(ts *testscript.TestScript, _ bool, args []string) {
	got, err := artifact.Open(context.Background(), new(registry.Client), "oci:"+ts.MkAbs(args[0])+":"+args[1], nil)
	ts.Check(err)
	ts.Check(os.CopyFS(ts.MkAbs(args[2]), got.Files.FS()))
}

func renamed(ts *testscript.TestScript, _ bool, args []string) {
	layout := ts.MkAbs(args[0])
	got, err := artifact.Open(context.Background(), new(registry.Client), "oci:"+layout+":"+args[1], nil)
	ts.Check(err)
	got.Meta.Revision = "main@sha1:" + strings.TrimSpace(ts.ReadFile(args[3]))
	packed, err := artifact.Pack(got.Files.FS(), got.Meta)
	ts.Check(err)
	ts.Check(packed.WriteLayout(layout, args[2]))
}

// kustomizations returns the directories in and below dir that hold a
// kustomization, sorted.
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
