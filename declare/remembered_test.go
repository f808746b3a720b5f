package declare_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/memo"
	"github.com/quayside/quayside/internal/testing/propertytest"
	"github.com/quayside/quayside/internal/testing/repotest"
)

// resultFile is a file with results in memory.
type resultFile struct{ data []byte }

// open returns the results for the next command.
func (f *resultFile) open() *memo.Results {
	return memo.New("test", func() ([]byte, error) { return f.data, nil }, func(data []byte) error { f.data = data; return nil })
}

// surveyText returns the content of a survey as text.
func surveyText(s *survey.Survey) string {
	var out strings.Builder
	for _, d := range slices.Concat(s.Declarations, s.Charts) {
		fmt.Fprintf(&out, "%s %s %s/%s %s %q\n", d.Pos, d.Kind, d.Namespace, d.Name, d.Package, d.Obstacle)
		for _, a := range s.Appliers(d) {
			fmt.Fprintf(&out, "  %s %s %s %q %q\n", a.Entry.By, a.Pos, a.Dir, a.Cluster, a.Changes)
		}
		for _, p := range s.Policies(d) {
			fmt.Fprintf(&out, "  %s %s\n", p.By, p.Pos)
		}
		fmt.Fprintf(&out, "  %q %q\n", s.TopKustomizations(d), s.Unlisted(d))
	}
	for _, e := range s.Entries {
		fmt.Fprintf(&out, "%s %s %q\n", e.By, e.Pos, e.CannotTell())
	}
	for _, a := range s.Applications(nil, nil, func(survey.Declaration) bool { return true }) {
		fmt.Fprintf(&out, "%s %s %s %t %s\n", a.By, a.Pos, a.Declaration.Pos, a.Proven, a.Cluster)
	}
	p := s.Propose(nil)
	chosen, open := p.Choose(p.Environments)
	fmt.Fprintf(&out, "%q %v %v\n", p.Environments, chosen, open)
	return out.String()
}

// checkRemembered checks that results of earlier commands do not change the survey or the declarations.
func checkRemembered(t *rapid.T, f *resultFile, files fstest.MapFS, opt declare.LoadOptions) {
	skipNone, none := func(fs.FS, string) bool { return false }, func(string) bool { return false }
	freshSurvey, err := survey.New(files, skipNone, none, nil, survey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fresh, freshErr := declare.LoadFS(files, opt)
	opt.Results = f.open()
	s, err := survey.New(files, skipNone, none, nil, survey.Options{Results: opt.Results})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(surveyText(freshSurvey), surveyText(s)); d != "" {
		t.Fatalf("survey: -fresh +remembered\n%s\n%s", d, show(files))
	}
	got, gotErr := declare.LoadFS(files, opt)
	if d := cmp.Diff(fresh, got, cmpopts.IgnoreUnexported(declare.Unread{})); d != "" || !slices.Equal(faultTexts(freshErr), faultTexts(gotErr)) {
		t.Fatalf("-fresh +remembered\n%s\n%v\n%v\n%s", d, freshErr, gotErr, show(files))
	}
}

// editRepository changes a file of a repository at random.
func editRepository(t *rapid.T, files fstest.MapFS) {
	names := slices.Sorted(maps.Keys(files))
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "file")
	other := rapid.SampledFrom(names).Draw(t, "other file")
	put := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	content := string(files[name].Data)
	linked := slices.ContainsFunc(names, func(name string) bool { return files[name].Mode&fs.ModeSymlink != 0 })
	switch edit := rapid.SampledFrom([]string{"comment", "value", "delete", "rename", "copy", "swap", "second kustomization", "component", "link", "unlink", "fault"}).Draw(t, "edit"); edit {
	case "copy", "swap", "link": // a second link could make a cycle, for which fstest.MapFS has no error
		switch {
		case linked:
		case edit == "copy":
			files[name] = files[other]
		case edit == "swap":
			files[name], files[other] = files[other], files[name]
		case name != other:
			files[name] = &fstest.MapFile{Data: []byte(strings.Repeat("../", strings.Count(name, "/")) + other), Mode: fs.ModeSymlink}
		}
	case "comment": // only changes positions
		put(name, "# comment\n"+content)
	case "value":
		put(name, strings.NewReplacer("channel: ", "channel: x", "namespace: one", "namespace: two", "value: ", "value: x").Replace(content))
	case "delete":
		delete(files, name)
	case "rename":
		delete(files, name)
		files[path.Join(path.Dir(name), "renamed-"+path.Base(name))] = &fstest.MapFile{Data: []byte(content)}
	case "second kustomization":
		put(path.Join(path.Dir(name), "kustomization.yml"), "resources: []\n")
	case "component":
		put("component/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{target: {kind: Subscription}, patch: '- {op: replace, path: /spec/channel, value: "+rapid.SampledFrom([]string{"a", "b"}).Draw(t, "channel")+"}'}]\n")
		if path.Base(name) == "kustomization.yaml" && !strings.Contains(content, "components") {
			put(name, content+"components: ["+strings.Repeat("../", strings.Count(name, "/"))+"component]\n")
		}
	case "unlink":
		for _, name := range names {
			if files[name].Mode&fs.ModeSymlink != 0 {
				delete(files, name)
			}
		}
	case "fault":
		put(name, content+"x: [\n")
	}
}

// TestRememberedProperty reads a random repository again after each of several edits. Results of earlier
// commands must not change what is read, even if the options of the commands differ.
func TestRememberedProperty(t *testing.T) {
	propertytest.LimitChecks(t, 40)
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, rapid.Bool().Draw(t, "faults"))
		files := r.Files()
		opt := declare.LoadOptions{Paths: paths(r.Paths...)}
		f := &resultFile{}
		checkRemembered(t, f, files, opt)
		for range rapid.IntRange(0, 6).Draw(t, "edits") {
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				opt.Paths = paths(rapid.Permutation(r.Paths).Draw(t, "paths")...)
			case 1:
				opt.Environment = rapid.SampledFrom([]string{"", "dev"}).Draw(t, "environment")
			case 2:
				opt.Dir = rapid.SampledFrom([]string{"", "workspace"}).Draw(t, "workspace")
				for i, p := range opt.Paths {
					p.Path = strings.TrimPrefix(p.Path, "../")
					if opt.Dir != "" {
						p.Path = "../" + p.Path
					}
					opt.Paths[i] = p
				}
			default:
				editRepository(t, files)
			}
			checkRemembered(t, f, files, opt)
		}
	})
}

// TestRememberedIsUsed reads a kustomization twice. The second time, nothing is built.
func TestRememberedIsUsed(t *testing.T) {
	f := &resultFile{}
	files := fstest.MapFS{
		"base/kustomization.yaml": text("resources: [s.yaml]\n"),
		"base/s.yaml":             text("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: etcd, namespace: base}\nspec: {name: etcd, channel: stable, source: hub, sourceNamespace: olm}\n"),
		"prod/kustomization.yaml": text("resources: [../base]\nnamespace: prod\n"),
	}
	for i, want := range []bool{true, false} {
		written := false
		r := memo.New("test", func() ([]byte, error) { return f.data, nil }, func(data []byte) error {
			f.data, written = data, true
			return nil
		})
		set, err := declare.LoadFS(files, declare.LoadOptions{Paths: paths("prod"), Results: r})
		if err != nil || len(set.Subscriptions) != 1 || set.Subscriptions[0].Namespace != "prod" {
			t.Fatalf("%v, %v", set, err)
		}
		if written != want {
			t.Errorf("command %d: results were written: %t", i, written)
		}
	}
}

// BenchmarkAgain reads overlays of operators. The metric "first/again" is the time of the first command,
// divided by the time of a later one.
func BenchmarkAgain(b *testing.B) {
	files := fstest.MapFS{}
	for i := range 200 {
		dir := fmt.Sprintf("ops/o%d", i)
		files[dir+"/base/kustomization.yaml"] = text("resources: [s.yaml, config.yaml]\n")
		files[dir+"/base/s.yaml"] = text(fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: o%d, namespace: base}\nspec: {name: o%d, channel: none, source: hub, sourceNamespace: olm}\n", i, i))
		files[dir+"/base/config.yaml"] = text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: text of a setting}\n")
		files[dir+"/prod/kustomization.yaml"] = text("resources: [../base]\nnamespace: prod\npatches: [{target: {kind: Subscription}, patch: '- {op: replace, path: /spec/channel, value: stable}'}]\n")
	}
	dir := b.TempDir()
	if err := os.CopyFS(dir, files); err != nil {
		b.Fatal(err)
	}
	f := &resultFile{}
	run := func() {
		set, err := declare.LoadFS(os.DirFS(dir), declare.LoadOptions{Paths: paths("ops/*/prod"), Results: f.open()})
		if err != nil || len(set.Subscriptions) != 200 {
			b.Fatal(err)
		}
	}
	start := time.Now()
	run()
	first := time.Since(start)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(first)/(float64(b.Elapsed())/float64(b.N)), "first/again")
}
