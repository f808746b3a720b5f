// Package clitest runs the program in tests, with scripts, and checks the output against the schemas.
//
// Start from [Main] and [Scripts].
package clitest

import (
	"bytes"
	"cmp"
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

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/internal/helm/engine"
)

// Main runs the tests of a package and ends the process. In the tests, PATH contains quayside and
// the programs in more. All of them are the test binary, which selects the program by its name.
func Main(m *testing.M, parts []cli.Part, more map[string]func()) {
	programs := map[string]func(){
		"quayside": func() {
			var stdout bytes.Buffer
			code := cli.Main(parts, os.Args[1:], os.Stdin, io.MultiWriter(os.Stdout, &stdout), os.Stderr, os.Environ())
			if err := Conforms(parts, os.Args[1:], stdout.Bytes()); err != nil {
				fmt.Fprintf(os.Stderr, "%q: %v\n", os.Args[1:], err)
				code = nonconforming
			}
			os.Exit(code)
		},
	}
	programs["quayside-charts"] = func() { os.Exit(engine.Serve(os.Stdin, os.Stdout)) }
	maps.Copy(programs, more)
	// After a command, most of the heap is garbage. Collecting it only near the memory limit saves a tenth of
	// the time.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(1 << 30)
	if program, ok := programs[filepath.Base(os.Args[0])]; ok {
		program()
		return
	}
	code, err := withPrograms(m.Run, slices.Collect(maps.Keys(programs)))
	if err != nil {
		panic(err)
	}
	os.Exit(code)
}

// nonconforming is the exit code of quayside in tests if its output does not conform to its schema.
const nonconforming = 99

// withPrograms runs the tests with the named programs in PATH. All of them are this binary. The
// home directory contains only a Git configuration, so that the user's settings do not affect the
// tests.
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
	if err := writeGitConfig(bin); err != nil {
		return 0, err
	}
	key, value := raceOptions()
	env := map[string]string{"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME": bin, "XDG_CONFIG_HOME": "", key: value}
	if home, err := os.UserHomeDir(); err == nil { // 'go list' needs the build cache of the real home directory
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

// raceOptions returns an environment variable for programs that are built with the race detector. By default
// they wait one second at exit, which is too long because the tests run hundreds of programs.
func raceOptions() (key, value string) {
	return "GORACE", cmp.Or(os.Getenv("GORACE"), "atexit_sleep_ms=10")
}

// Command is a command in scripts.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// runner implements the script commands that run quayside.
type runner struct {
	parts []cli.Part
	dir   string // directory of the scripts
}

// Scripts runs the testscript files of one directory. Scripts have testscript's commands, the
// commands in more, and:
//
//	quayside [-C dir] args...
//	                        run quayside, in this process
//	code N quayside args... run quayside; it must exit with N
//	code N exec program args...
//	                        run a program that must exit with N (exec is optional,
//	                        except for quayside)
//	quickstart              copy examples/quickstart into the work directory
//	keep path...            remember files and directories
//	kept                    fail if any of them has changed
//	fill file...            replace ${NAME} with the value of the variable
//	cluster file...         start an API server with the objects in files
//
// quayside runs in the test process, with -C, which takes a tenth of the time of a new process.
// A script must use exec quayside, a separate process, for behaviour that depends on the current
// directory (file names in output, the search for a workspace), on standard input, or on Git's
// environment variables.
func Scripts(t *testing.T, parts []cli.Part, update bool, files, environ []string, more map[string]Command) {
	t.Helper()
	r := runner{parts, filepath.Dir(files[0])}
	commands := map[string]Command{
		"quayside":   r.succeed,
		"code":       r.code,
		"quickstart": quickstartCommand,
		"keep":       keepCommand,
		"kept":       keptCommand,
		"fill":       fillCommand,
		"cluster":    clusterCommand(t),
	}
	maps.Copy(commands, more)
	testscript.Run(t, testscript.Params{
		Files:              files,
		WorkdirRoot:        t.TempDir(), // one directory for all scripts, removed at the end: ext4 is slow at alternating creation and removal
		UpdateScripts:      update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			env.Setenv(raceOptions())
			env.Vars = append(env.Vars, environ...)
			return setHome(env)
		},
		Cmds: commands,
	})
}

// setHome sets a home directory whose Git configuration names an author for commits. The configuration disables
// Git's maintenance, which would take a tenth of the tests' time.
func setHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	env.Setenv("HOME", home)
	if err := os.MkdirAll(home, 0o777); err != nil {
		return err
	}
	return writeGitConfig(home)
}

// writeGitConfig writes the Git configuration of a home directory.
func writeGitConfig(home string) error {
	return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Test\n\temail = test@example.com\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[core]\n\tfsync = none\n"), 0o666)
}

// quickstartCommand copies the quickstart example of the repository into the work directory.
func quickstartCommand(ts *testscript.TestScript, _ bool, _ []string) {
	top := ".."
	for _, err := os.Stat(filepath.Join(top, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(top, "go.mod")) {
		top = filepath.Join(top, "..")
	}
	CopyInto(ts, filepath.Join(top, "examples", "quickstart"), ".")
}

func (r runner) code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if args = args[1:]; args[0] == "quayside" {
		got = r.run(ts, args[1:])
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

func (r runner) succeed(ts *testscript.TestScript, neg bool, args []string) {
	if code := r.run(ts, args); (code == 0) == neg {
		ts.Fatalf("exit code %d", code)
	}
}

// run runs quayside in this process, in the script's directory, and returns its exit code. quayside gets only
// the environment variables that run lists, and those that the script sets.
func (r runner) run(ts *testscript.TestScript, args []string) int {
	text, err := os.ReadFile(filepath.Join(r.dir, ts.Name()+".txtar"))
	ts.Check(err)
	var env []string
	for _, m := range regexp.MustCompile(`\b([A-Z_]+)=`).FindAllStringSubmatch("HOME= XDG_CACHE_HOME= KUBECONFIG= GIT_TOKEN= GITHUB_SERVER_URL= GITHUB_API_URL= GITHUB_REPOSITORY= "+string(text), -1) {
		env = append(env, m[1]+"="+ts.Getenv(m[1]))
	}
	dir := "."
	if len(args) > 1 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	at := 0
	if len(args) > 0 && args[0] == "__complete" {
		at = 1 // completion: the flag is part of the command line to complete, which starts at index 1
	}
	args = slices.Insert(args, at, "-C", ts.MkAbs(dir))
	var stdout bytes.Buffer
	stdin := iotest.ErrReader(errors.New("only 'exec quayside' can read standard input"))
	code := cli.Main(r.parts, args, stdin, io.MultiWriter(ts.Stdout(), &stdout), ts.Stderr(), env)
	if err := Conforms(r.parts, args, stdout.Bytes()); err != nil {
		ts.Fatalf("%q: %v", args, err)
	}
	return code
}

func fillCommand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o666))
	}
}

// CopyInto copies a directory into a directory of a script. from is relative to the package
// directory, the current directory of the test process.
func CopyInto(ts *testscript.TestScript, from, to string) {
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

// keptFile records the arguments of the last keep command, and a fingerprint of these files.
const keptFile = ".tmp/kept"

func keepCommand(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(keptFile), []byte(strings.Join(args, "\n")+"\n"+filesFingerprint(ts, args)), 0o666))
}

func keptCommand(ts *testscript.TestScript, _ bool, _ []string) {
	data, err := os.ReadFile(ts.MkAbs(keptFile))
	ts.Check(err)
	names, want, _ := strings.Cut(string(data), "\n#\n")
	got := filesFingerprint(ts, strings.Split(names, "\n"))
	if _, got, _ = strings.Cut("\n"+got, "\n#\n"); got != want {
		ts.Fatalf("changed\nbefore:\n%s\nafter:\n%s", want, got)
	}
}

// filesFingerprint lists the modes and contents of names and all files below them.
func filesFingerprint(ts *testscript.TestScript, names []string) string {
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
				return fs.SkipDir // files of testscript and of quayside's store
			}
			if d.Name() == "quayside-writer" {
				return nil // lock file of commands that write
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
