package gitrepo_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/gitrepo"
)

// TestContentAttributes compares the result of ContentAttributes with the output of 'git check-attr'. The
// result must contain every attribute that changes content.
func TestContentAttributes(t *testing.T) {
	names := []string{"a.yaml", "a b.yaml", "sub/a.yaml", "sub/deep/b.yaml", "other/ü.yaml", "other/x.sh"}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // affected files
	}{
		"none":              {map[string]string{".gitattributes": "# *.yaml ident\n* text=auto eol=lf -diff merge=union linguist-generated\n*.yaml -filter !ident working-tree-encoding=utf-8\n"}, nil},
		"encoding":          {map[string]string{".gitattributes": "*.yaml working-tree-encoding=ASCII//TRANSLIT\n"}, names[:5]},
		"ident":             {map[string]string{".gitattributes": "/a.yaml ident\r\n"}, names[:1]},
		"eol":               {map[string]string{".gitattributes": "sub/** eol=crlf"}, []string{"sub/a.yaml", "sub/deep/b.yaml"}},
		"nested":            {map[string]string{"sub/.gitattributes": "b.yaml filter=x\n"}, []string{"sub/deep/b.yaml"}},
		"nested, anchored":  {map[string]string{"sub/.gitattributes": "deep/*.yaml filter=x\n"}, []string{"sub/deep/b.yaml"}},
		"macro":             {map[string]string{".gitattributes": "[attr]one two\n[attr]two -text ident\n", "sub/.gitattributes": "a.yaml text one\n"}, []string{"sub/a.yaml"}},
		"macro that loops":  {map[string]string{".gitattributes": "[attr]one two\n[attr]two one\n* one\n"}, nil},
		"quoted":            {map[string]string{".gitattributes": "\"a b.yaml\" ident\n"}, names[1:2]},
		"quoted, octal":     {map[string]string{".gitattributes": "\"other/\\303\\274.yaml\" ident\n"}, names[4:5]},
		"escaped":           {map[string]string{".gitattributes": "\\a.yaml ident\n"}, []string{"a.yaml", "sub/a.yaml"}},
		"doublestar":        {map[string]string{".gitattributes": "**/deep/**/b.yaml ident\n"}, []string{"sub/deep/b.yaml"}},
		"byte order mark":   {map[string]string{".gitattributes": "\ufeffa.yaml ident\n"}, []string{"a.yaml", "sub/a.yaml"}},
		"brackets, more":    {map[string]string{".gitattributes": "sub/[a-z[:digit:]].yaml ident\n"}, []string{"sub/a.yaml", "sub/deep/b.yaml"}},
		"unset later, more": {map[string]string{".gitattributes": "a.yaml ident\na.yaml -ident\n"}, []string{"a.yaml", "sub/a.yaml"}},
		"no text, more":     {map[string]string{"sub/.gitattributes": "\xff\xfe*\x00 \x00"}, []string{"sub/a.yaml", "sub/deep/b.yaml"}},
		"of the clone":      {map[string]string{".git/info/attributes": "*.sh ident\n"}, names[5:]},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "init", "-q")
			for _, name := range names {
				write(t, dir, name, "x\n")
			}
			var files []gitrepo.AttributeFile
			for name, text := range c.files {
				write(t, dir, name, text)
				at := path.Dir(name)
				if strings.HasPrefix(name, ".git/") {
					at = "."
				}
				files = append(files, gitrepo.AttributeFile{Name: name, Dir: at, Data: []byte(text)})
			}
			var got []string
			for _, a := range gitrepo.ContentAttributes(files) {
				got = append(got, a.Affected(names)...)
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, slices.Sorted(slices.Values(c.want))) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, name := range changedByGit(t, dir, names) {
				if !slices.Contains(got, name) {
					t.Errorf("git changes %s", name)
				}
			}
		})
	}
}

// changedByGit returns the files for which Git has an attribute that changes content.
func changedByGit(t *testing.T, dir string, names []string) []string {
	cmd := exec.Command("git", append([]string{"check-attr", "-z", "working-tree-encoding", "ident", "filter", "eol", "--"}, names...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, ".git"), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for f := range slices.Chunk(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), 3) {
		if v := f[2]; v != "unspecified" && v != "unset" && v != "lf" && v != "utf-8" {
			changed = append(changed, f[0])
		}
	}
	return changed
}

// TestContentAttributePosition checks the positions and the macros that ContentAttributes returns.
func TestContentAttributePosition(t *testing.T) {
	got := gitrepo.ContentAttributes([]gitrepo.AttributeFile{{Name: "x", Dir: ".", Data: []byte("[attr]m ident\n\n*.md text\n  *.yaml text m filter=lfs\n")}})
	if len(got) != 2 || got[0].Line != 4 || got[0].Column != 15 || got[0].Attribute != "ident" || got[0].Macro != "m" || got[1].Column != 17 || got[1].Macro != "" {
		t.Errorf("got %+v", got)
	}
}
