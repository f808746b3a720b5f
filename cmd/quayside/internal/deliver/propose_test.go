package deliver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
)

func TestReleased(t *testing.T) {
	for name, c := range map[string]struct {
		csv  bundle.CSV
		want []string
	}{
		"github": {
			bundle.CSV{Name: "etcdoperator.v0.9.4", Version: "0.9.4", Annotations: map[string]string{"repository": "https://github.com/coreos/etcd-operator", "support": "https://a.example/help"}},
			[]string{"[repository](https://github.com/coreos/etcd-operator)", "[v0.9.2...v0.9.4](https://github.com/coreos/etcd-operator/compare/v0.9.2...v0.9.4)", "[support](https://a.example/help)"},
		},
		"tags without a letter": {
			bundle.CSV{Name: "x.v0.9.4", Version: "0.9.4", Annotations: map[string]string{"repository": "github.com/org/x.git", "containerImage": "quay.io/org/x:0.9.4"}},
			[]string{"[repository](https://github.com/org/x.git)", `[0\.9.2...0.9.4](https://github.com/org/x/compare/0.9.2...0.9.4)`},
		},
		"gitlab": {
			bundle.CSV{Name: "x.v0.9.4", Version: "0.9.4", Annotations: map[string]string{"repository": "https://gitlab.com/group/sub/x/"}},
			[]string{"[repository](https://gitlab.com/group/sub/x/)", "[v0.9.2...v0.9.4](https://gitlab.com/group/sub/x/-/compare/v0.9.2...v0.9.4)"},
		},
		"a forge of somebody's": {
			bundle.CSV{Name: "x.v0.9.4", Version: "0.9.4", Annotations: map[string]string{"repository": "https://gitea.example.com/org/x.git"}},
			[]string{"[repository](https://gitea.example.com/org/x.git)", "[v0.9.2...v0.9.4](https://gitea.example.com/org/x/compare/v0.9.2...v0.9.4)"},
		},
		"another forge": {
			bundle.CSV{Name: "x.v0.9.4", Version: "0.9.4", Annotations: map[string]string{"repository": "https://git.example/x"}}, []string{"[repository](https://git.example/x)"},
		},
		"versions are written in no known way": {
			bundle.CSV{Name: "x", Version: "0.9.4", Annotations: map[string]string{"repository": "https://github.com/org/x"}}, []string{"[repository](https://github.com/org/x)"},
		},
		"no addresses": {bundle.CSV{Version: "1.0.0", Annotations: map[string]string{"repository": "javascript:alert(1)", "support": "Example, Inc."}}, nil},
		"hostile": {
			bundle.CSV{Name: "x.v1.0.0", Version: "1.0.0", Annotations: map[string]string{"repository": "https://github.com/a/b)[c](https://evil.example"}},
			[]string{"[repository](https://github.com/a/b%29%5Bc%5D%28https://evil.example)"},
		},
		"nothing said": {bundle.CSV{Name: "x.v1.0.0", Version: "1.0.0"}, nil},
	} {
		if d := cmp.Diff(c.want, releaseLinks(&c.csv, "0.9.2")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestRefPart checks with Git that cleanRefPart turns any text into a valid part of a branch name.
func TestRefPart(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: nothing to compare with")
	}
	rapid.Check(t, func(t *rapid.T) {
		part := cleanRefPart(rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("./.-@{lock}~^ \\")), rapid.Rune())).Draw(t, "name"))
		if strings.HasPrefix(part, "/") || strings.HasSuffix(part, "/") {
			t.Fatalf("%q", part)
		}
		if out, err := exec.Command("git", "check-ref-format", "refs/heads/up/"+part+"/x").CombinedOutput(); part != "" && err != nil {
			t.Fatalf("%q: %v %s", part, err, out)
		}
	})
	for _, good := range []string{"prod", "envs/prod", "My_Shop-1.2"} {
		if got := cleanRefPart(good); got != good {
			t.Errorf("%q became %q", good, got)
		}
	}
}

// TestEnvironment checks that the workspaces of a repository have distinct names.
func TestEnvironment(t *testing.T) {
	root := t.TempDir()
	for dir, name := range map[string]string{
		".": "", "envs/dev": "", "envs/prod": "", "eu/prod": "", "us/west": "prod", "shop": "My shop", "other": "my-shop", ".hidden/dev": "", "broken": "[",
	} {
		text := "apiVersion: quayside.dev/v1alpha1\nkind: Workspace\n"
		if name != "" {
			text += "metadata: {name: " + name + "}\n"
		}
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "quayside.yaml"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=T", "-c", "user.email=t@example.com", "commit", "-q", "-m", "start"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	for dir, want := range map[string]string{".": "", "envs/dev": "dev", "envs/prod": "envs/prod", "eu/prod": "eu/prod", "us/west": "us/west", "shop": "My shop", "other": "my-shop"} {
		p, err := workspace.Open(workspace.Dir(filepath.Join(root, dir)), workspace.Env{Getenv: func(key string) string {
			return map[string]string{"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.com"}[key]
		}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := OpenProposer(t.Context(), p, ProposalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if b.Environment != want {
			t.Errorf("%s is called %q, want %q", dir, b.Environment, want)
		}
	}
}
