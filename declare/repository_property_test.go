package declare_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
	"github.com/quayside/quayside/declare/survey"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/testing/repotest"
)

// readOperators returns the operators of a set as texts, sorted and without duplicates.
func readOperators(set *declare.Set) []string {
	var out []string
	if set == nil {
		return nil
	}
	for _, s := range set.Subscriptions {
		config := ""
		if _, rest, found := strings.Cut(string(s.Config), `"value":"`); found {
			config, _, _ = strings.Cut(rest, `"`)
		}
		out = append(out, repotest.Operator{Namespace: s.Namespace, Name: s.Name, Package: s.Package, Channel: strings.Join(s.Channels, ","), Config: config}.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func operatorTexts(list []repotest.Operator) []string {
	var out []string
	for _, o := range list {
		out = append(out, o.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func load(r repotest.Repository, list []string) (*declare.Set, error) {
	return declare.LoadFS(r.Files(), declare.LoadOptions{Paths: paths(list...)})
}

// TestRepositoryProperty compares the declarations that are read from random repositories with the objects
// that the GitOps tools apply from them. Unreadable declarations must be listed.
func TestRepositoryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, true)
		set, err := load(r, r.Paths)
		if d := cmp.Diff(operatorTexts(r.Applied), readOperators(set)); d != "" {
			t.Fatalf("-applied +read\n%s\n%v\n%s", d, err, show(r.Files()))
		}
		for _, o := range r.Lost {
			if !slices.ContainsFunc(set.Unread, func(u declare.Unread) bool { return u.MayDeclare(o.Namespace, o.Name, o.Package) }) {
				t.Fatalf("%s is lost: %v", o, err)
			}
		}
	})
}

// TestFaultsInRepositoryProperty compares a repository with faults with the same repository without faults.
// Faults must not affect operators that do not need the faulty files.
func TestFaultsInRepositoryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, true)
		faulty, _ := load(r, r.Paths)
		sound, err := load(r.Sound(), r.Paths)
		lost := operatorTexts(r.Lost)
		var want []declare.Subscription
		for _, s := range sound.Subscriptions {
			one := &declare.Set{Subscriptions: []declare.Subscription{s}}
			if !slices.Contains(lost, readOperators(one)[0]) {
				want = append(want, s)
			}
		}
		if d := cmp.Diff(want, faulty.Subscriptions, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(diag.Pos{}, diag.Fields{})); d != "" {
			t.Fatalf("-sound +faulty\n%s\n%v\n%s", d, err, show(r.Files()))
		}
	})
}

// TestOrderOfPathsProperty reads the paths of a repository in two orders. The results must be the same.
func TestOrderOfPathsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, true)
		want, wantErr := load(r, r.Paths)
		got, gotErr := load(r, rapid.Permutation(r.Paths).Draw(t, "paths"))
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(declare.Unread{})); d != "" || !slices.Equal(faultTexts(wantErr), faultTexts(gotErr)) {
			t.Fatalf("-first +second\n%s\n%v\n%v", d, wantErr, gotErr)
		}
	})
}

func faultTexts(err error) []string {
	var list diag.List
	list.Add(diag.Pos{}, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Error())
	}
	slices.Sort(out)
	return out
}

// TestSurveyProperty compares the survey of a random repository with the objects that the GitOps tools apply,
// and with the declarations that are read from the proposed paths.
func TestSurveyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := repotest.Draw(t, rapid.Bool().Draw(t, "faults"))
		s, err := survey.New(r.Files(), func(fs.FS, string) bool { return false }, func(string) bool { return false }, nil, survey.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		appliers := map[string]bool{}
		for _, d := range s.Declarations {
			if d.Obstacle == "" {
				found = append(found, d.Pos.File)
			}
			for _, a := range s.Appliers(d) {
				appliers[d.Pos.File+" "+a.Entry.Pos.File+" "+a.Cluster] = true
			}
		}
		slices.Sort(found)
		want := slices.Sorted(slices.Values(r.Sources))
		if d := cmp.Diff(want, found); d != "" {
			t.Fatalf("-sources +found\n%s", d)
		}
		for _, o := range r.Applied {
			if strings.HasSuffix(o.Entry, ".yaml") && !appliers[o.File+" "+o.Entry+" "+o.Cluster] {
				t.Fatalf("%s does not apply %s to %q: %v\n%s", o.Entry, o.File, o.Cluster, appliers, show(r.Files()))
			}
		}
		checkProposal(t, r, s)
	})
}

// checkProposal checks that the proposed paths contain each applied operator, in the form in which it is
// applied to one of the clusters.
func checkProposal(t *rapid.T, r repotest.Repository, s *survey.Survey) {
	p := s.Propose(nil)
	chosen, _ := p.Choose(p.Environments)
	var list []declare.Path
	for _, c := range chosen {
		list = append(list, declare.Path{Path: c.Path, Cluster: c.Cluster})
	}
	if len(list) == 0 {
		if len(r.Applied) > 0 {
			t.Fatalf("nothing is proposed for %v", operatorTexts(r.Applied))
		}
		return
	}
	set, err := declare.LoadFS(r.Files(), declare.LoadOptions{Paths: list})
	applied, read := operatorTexts(r.Applied), readOperators(set)
	isApplied, packages := map[string]bool{}, map[string]bool{}
	for _, o := range r.Applied {
		isApplied[o.Package] = true
	}
	for _, o := range read {
		if isApplied[strings.Fields(o)[1]] && !slices.Contains(applied, o) {
			t.Fatalf("%s is read, but not applied: %v\n%v\n%s", o, chosen, applied, show(r.Files()))
		}
		packages[strings.Fields(o)[1]] = true
	}
	for _, o := range r.Applied {
		if !packages[o.Package] {
			t.Fatalf("%s is applied, but not read from the proposal %v: %v\n%s", o, chosen, err, show(r.Files()))
		}
	}
}

// show returns the text of all files.
func show(files fs.FS) string {
	var out strings.Builder
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			data, _ := fs.ReadFile(files, name)
			out.WriteString("-- " + path.Clean(name) + " --\n" + string(data))
		}
		return nil
	})
	return out.String()
}
