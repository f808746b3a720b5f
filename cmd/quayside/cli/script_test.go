package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/cmd/quayside/cli"
	"github.com/quayside/quayside/registry"
	"github.com/quayside/quayside/registry/artifact"
	"github.com/quayside/quayside/registry/registrytest"
)

func TestMain(m *testing.M) {
	programs := map[string]func(){
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
	}
	if program, ok := programs[filepath.Base(os.Args[0])]; ok {
		program()
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // much lives long here, and is looked through again for every script
	}
	code, err := withPrograms(m.Run, slices.Collect(maps.Keys(programs)))
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// withPrograms runs the tests with programs in the path, all of which are this
// one, and with nobody's home: what somebody has told Git is not for the tests.
func withPrograms(tests func() int, names []string) (code int, err error) {
	bin, err := os.MkdirTemp("", "quayside-test-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			return 0, err
		}
	}
	key, value := raceOptions()
	env := map[string]string{"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME": bin, "XDG_CONFIG_HOME": "", key: value}
	if home, err := os.UserHomeDir(); err == nil { // what go list needs of it
		env["GOPATH"] = cmp.Or(os.Getenv("GOPATH"), filepath.Join(home, "go"))
	}
	if cache, err := os.UserCacheDir(); err == nil {
		env["GOCACHE"] = cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build"))
	}
	for key, value := range env {
		if err := os.Setenv(key, value); err != nil {
			return 0, err
		}
	}
	return tests(), nil
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

// scripts is where the scripts are.
const scripts = "testdata/script"

// TestScripts runs testdata/script/<command>_<case>.txtar. Beside testscript's
// own commands there are:
//
//	quayside args...        run quayside, in this process
//	code N quayside args... likewise; it must exit with N
//	code N exec program args...
//	                        run a program that must exit with N (exec may be left out
//	                        but for quayside)
//	quickstart              copy examples/quickstart into the work directory
//	fixture name [dir]      copy a directory of the repository's testdata
//	keep path...            remember files and directories
//	kept                    fail if what was remembered has changed
//	build dir...            build the kustomizations in and below dirs
//	unpack layout tag dir   write the files of an artifact in an OCI layout into dir
//	renamed layout from to file
//	                        give an artifact in an OCI layout the commit that a file names
//	alone program args...   run a program without a network, where that is allowed
//	fill file...            put the values of variables in the place of ${NAME}
//	told message            fail unless quayside just said that; … stands for anything
//	forge kind              be in a job of a forge with seven pull requests, whose API is served
//	cluster file...         start an API server that has these objects
//	olm file...             start one that is written to, with OLM and a garbage collector
//
// $REGISTRY is a registry on loopback, the same for all scripts.
//
// quayside in this process takes a tenth of what a program takes that has to
// start, and is told where it works by -C. So what hangs on the current directory
// (names of files that are shown as they were given, a workspace that is looked
// for upwards), on the standard input or on what Git finds in the environment says
// exec quayside, which is the program by itself.
//
// With -short, those that do what a page says are left out.
func TestScripts(t *testing.T) {
	server := registrytest.New(t)
	files, err := filepath.Glob(scripts + "/*.txtar")
	check(t, err)
	if testing.Short() {
		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "pages_") })
	}
	testscript.Run(t, testscript.Params{
		Files:              files,
		WorkdirRoot:        t.TempDir(), // not to be removed one by one: ext4 is slow where files come and go in turn
		UpdateScripts:      *cli.Update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv("REGISTRY", server.Host)
			env.Setenv(raceOptions())
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"quayside":   succeed,
			"code":       code,
			"quickstart": func(ts *testscript.TestScript, _ bool, _ []string) { copyInto(ts, "../../../examples/quickstart", ".") },
			"fixture":    fixture,
			"keep":       keep,
			"kept":       kept,
			"build":      build,
			"unpack":     unpackArtifact,
			"renamed":    renamed,
			"fill":       fill,
			"told":       told,
			"alone":      alone,
			"cluster":    cluster(t),
			"forge":      forgeServer(t),
			"olm":        installer(t),
			"keypair":    keyPair(t),
			"cosign":     cosign(t),
			"sigstore":   sigstore(t),
		},
	})
}

func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if args = args[1:]; args[0] == "quayside" {
		got = run(ts, args[1:])
	} else {
		if args[0] == "exec" {
			args = args[1:]
		}
		if err := ts.Exec(args[0], args[1:]...); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				ts.Fatalf("%v", err)
			}
			got = exit.ExitCode()
		}
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func succeed(ts *testscript.TestScript, neg bool, args []string) {
	if code := run(ts, args); (code == 0) == neg {
		ts.Fatalf("exit code %d", code)
	}
}

// run runs quayside in this process, where the script is, and returns its exit
// code. Of the environment it gets what every script has and what this one sets.
func run(ts *testscript.TestScript, args []string) int {
	if slices.Contains(args, "-C") || len(args) > 0 && strings.HasPrefix(args[0], "__") {
		ts.Fatalf("%q: exec quayside, for -C comes before all of this", args)
	}
	text, err := os.ReadFile(filepath.Join(scripts, ts.Name()+".txtar"))
	ts.Check(err)
	var env []string
	for _, m := range regexp.MustCompile(`\b([A-Z_]+)=`).FindAllStringSubmatch("HOME= XDG_CACHE_HOME= KUBECONFIG= GIT_TOKEN= GITHUB_SERVER_URL= GITHUB_API_URL= GITHUB_REPOSITORY= "+string(text), -1) {
		env = append(env, m[1]+"="+ts.Getenv(m[1]))
	}
	args = append([]string{"-C", ts.MkAbs(".")}, args...)
	var stdout bytes.Buffer
	stdin := iotest.ErrReader(errors.New("exec quayside reads what stdin names"))
	code := cli.Main(args, stdin, io.MultiWriter(ts.Stdout(), &stdout), ts.Stderr(), env)
	if err := cli.Conforms(args, stdout.Bytes()); err != nil {
		ts.Fatalf("%q: %v", args, err)
	}
	return code
}

func told(ts *testscript.TestScript, _ bool, args []string) {
	said := ts.ReadFile("stderr") + ts.ReadFile("stdout")
	rest := said
	for part := range strings.SplitSeq(args[0], "…") {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			ts.Fatalf("%q was not said (there is no %q):\n%s", args[0], part, said)
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
			if _, err := kustomizeLibrary(dir); err != nil {
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
