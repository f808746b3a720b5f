package cli_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/internal/testing/forgetest"
)

// variant is an extension that this test adds: one file, and lines in the table that lists extensions of its
// kind.
type variant struct {
	file  string            // file of testdata/variants to add to the package
	dir   string            // directory of the package
	lines map[string]string // lines to insert after a line of a file: "table.go: first" → "second"
}

// variants returns a variant of each kind, such as a catalog source and a bundle format.
func variants() []variant {
	return []variant{
		{"source.go", "catalog/source", map[string]string{
			"table.go: {Name: sqliteScheme, find: findDatabase, prefix: filepath.Dir},": "crate(),",
		}},
		{"format.go", "bundle", map[string]string{
			"format.go: registryV1(),": "flat(),",
		}},
		{"profile.go", "internal/profile", map[string]string{
			"profile.go: {Plain, plain{}},": `{"barge", barge{}},`,
			"settings.go: FluxSettings":     "BargeSettings",
			"settings.go: FluxCluster":      "BargeCluster",
		}},
		{"certificates.go", "internal/profile/certificates", map[string]string{
			"certificates.go: {Secret, func(s ProviderSettings) Provider { return secretOf(s) }},": `{"vault", func(s ProviderSettings) Provider { return vault{VaultSettings: s.CertificateVault} }},`,
			"certificates.go: type ProviderSettings struct {":                                      "CertificateVault VaultSettings `json:\"certificateVault\" doc:\"For spec.certificates: vault.\"`",
		}},
		{"declaration.go", "declare", map[string]string{
			`subscription.go: {string(Quayside), "Subscription", []string{"quayside.dev/v1alpha1"}, (*reader).readSubscriptionOwn, fieldsOwn},`: `{string(Install), "Install", []string{"install.example.com/v1"}, (*reader).install, fieldsInstall},`,
			`survey/survey.go: {quaysideGroup, "Subscription", "metadata.namespace", "spec.package"},`:                                          `{"install.example.com", "Install", "metadata.namespace", "spec.operator"},`,
		}},
		{"rule.go", "diff", map[string]string{
			"finding.go: {objectRules, []check{compareObjects}},": "{teamRules, []check{compareTeams}},",
		}},
		{"forge.go", "internal/remote", map[string]string{
			`remote.go: {Bitbucket, "Bitbucket", []string{"bitbucket.org"}, nil, "/src/{commit}/{path}#lines-{line}", "", false, API{}},`: "hut(),",
		}},
	}
}

// withVariants builds the program with the variants, without changing files of the repository, and
// returns the directory of the program.
func withVariants(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	replaced, texts := map[string]string{}, map[string]string{}
	for _, v := range variants() {
		file, err := filepath.Abs(filepath.Join("testdata/variants", v.file))
		if err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(root, v.dir, "variant_"+v.file)] = file
		for _, place := range slices.Sorted(maps.Keys(v.lines)) {
			name, after, _ := strings.Cut(place, ": ")
			name = filepath.Join(root, v.dir, name)
			if texts[name] == "" {
				texts[name] = read(t, filepath.Dir(name), filepath.Base(name))
			}
			before, rest, found := cutLine(texts[name], after)
			if !found {
				t.Fatalf("%s does not contain the line %q exactly once", name, after)
			}
			texts[name] = before + v.lines[place] + "\n" + rest
		}
	}
	for name, text := range texts {
		changed := strings.ReplaceAll(strings.TrimPrefix(name, root+string(filepath.Separator)), string(filepath.Separator), "_")
		put(t, bin, changed, text)
		replaced[name] = filepath.Join(bin, changed)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	put(t, bin, "overlay.json", string(overlay))
	// Use the same flags as the other tests, to reuse their build cache.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-tags", "kustomize_disable_go_plugin_support", "-overlay", filepath.Join(bin, "overlay.json"), "-o", filepath.Join(bin, "quayside"), "./cmd/quayside")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// cutLine splits text after the given line, which must occur exactly once. It ignores white space around the line.
func cutLine(text, line string) (before, rest string, found bool) {
	at, n := 0, 0
	for l := range strings.Lines(text) {
		at += len(l)
		if strings.TrimSpace(l) == line {
			before, rest = text[:at], text[at:]
			n++
		}
	}
	return before, rest, n == 1
}

// TestVariants adds a variant of each kind to the program, and checks that every command supports it
// without knowing its name.
func TestVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	bin := withVariants(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/variants",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "Test")
				env.Setenv("GIT_"+who+"_EMAIL", "test@example.com")
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"hut": func(ts *testscript.TestScript, _ bool, _ []string) {
				s := forgetest.New(t, "gitlab")
				ts.Setenv("HUT_SERVER", s.URL)
				ts.Setenv("HUT_API", s.API())
				ts.Setenv("HUT_PROJECT", forgetest.Project)
				ts.Setenv("GIT_TOKEN", forgetest.Token)
			},
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				code := "0"
				if err != nil {
					code = strings.TrimPrefix(err.Error(), "exit status ")
				}
				if code != args[0] {
					ts.Fatalf("exit code %s, want %s", code, args[0])
				}
			},
		},
	})
}
