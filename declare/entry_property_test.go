package declare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quayside/quayside/declare"
)

// unit is a directory of a random repository that an entry point applies.
type unit struct {
	name                                string
	flux, kustomized, base, patch       bool
	inBase, target, destination, broken string   // namespaces, and the name of a faulty file
	subs                                []string // namespaces of the Subscriptions; "" for none
}

// files returns the files of the unit and its entry point.
func (u unit) files() map[string]string {
	out, dir := map[string]string{}, u.name
	if u.base {
		dir += "/base"
		out[u.name+"/kustomization.yaml"] = "resources: [base]\n"
	}
	var list []string
	for i, ns := range u.subs {
		file := fmt.Sprintf("s%d.yaml", i)
		list = append(list, file)
		out[dir+"/"+file] = fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: %s%d%s}\nspec: {name: %[1]s%[2]d, channel: stable, source: c, sourceNamespace: olm}\n", u.name, i, field(", namespace: ", ns))
	}
	if u.broken != "" {
		out[dir+"/"+u.broken] = "apiVersion: operators.coreos.com/v1alpha1\nkind: [\n"
		list = append(list, u.broken)
	}
	if u.kustomized {
		out[dir+"/kustomization.yaml"] = "resources: [" + strings.Join(list, ", ") + "]\n" + field("namespace: ", u.inBase) + "\n"
	}
	patch := ""
	if u.patch {
		patch = "patches: [{target: {kind: Subscription}, patch: '- {op: replace, path: /spec/channel, value: fast}'}]"
	}
	if u.flux {
		out["entries/"+u.name+".yaml"] = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k}\nspec:\n  path: ./" + u.name + "\n  sourceRef: {kind: GitRepository, name: x}\n  " + field("targetNamespace: ", u.target) + "\n  " + patch + "\n"
	} else {
		out["entries/"+u.name+".yaml"] = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  destination: {" + strings.TrimPrefix(field("namespace: ", u.destination), ", ") + "}\n  source:\n    path: " + u.name + "\n    kustomize:\n      " + field("namespace: ", u.target) + "\n      " + patch + "\n"
	}
	return out
}

func field(name, value string) string {
	if value == "" {
		return ""
	}
	return name + value
}

// want returns the Subscriptions that the tool applies and that can be read.
func (u unit) want() []string {
	if u.broken != "" && (u.kustomized || u.flux) {
		return nil // nothing of the build
	}
	var out []string
	for i, ns := range u.subs {
		for _, other := range []string{u.inBase, u.target} {
			if other != "" {
				ns = other
			}
		}
		if ns == "" && !u.flux {
			ns = u.destination
		}
		if ns == "" {
			continue
		}
		channel := "stable"
		if u.patch {
			channel = "fast"
		}
		out = append(out, fmt.Sprintf("%s/%s%d %s", ns, u.name, i, channel))
	}
	return out
}

// TestEntryPointsProperty reads declarations through the entry points of random repositories, and compares them
// with the result of unit.want. A fault must affect only the declarations that need the faulty file.
func TestEntryPointsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		repository := fstest.MapFS{}
		namespace := rapid.SampledFrom([]string{"", "one", "two"})
		var want []string
		for _, name := range []string{"a", "b", "c"} {
			u := unit{name: name, flux: rapid.Bool().Draw(t, "flux"), kustomized: rapid.Bool().Draw(t, "kustomized"), destination: namespace.Draw(t, "destination"), subs: rapid.SliceOfN(namespace, 1, 3).Draw(t, "subs")}
			if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
				u.broken = "x.yaml"
			}
			if u.kustomized {
				u.base, u.inBase = rapid.Bool().Draw(t, "base"), namespace.Draw(t, "in base")
			}
			if u.kustomized || u.flux {
				u.target, u.patch = namespace.Draw(t, "target"), rapid.Bool().Draw(t, "patch")
			}
			for file, text := range u.files() {
				repository[file] = &fstest.MapFile{Data: []byte(text)}
			}
			want = append(want, u.want()...)
		}
		set, _ := declare.LoadFS(repository, declare.LoadOptions{Paths: []declare.Path{{Path: "entries/*.yaml"}}})
		var got []string
		for _, s := range set.Subscriptions {
			got = append(got, s.Key()+" "+strings.Join(s.Channels, " "))
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("-want +got\n%s\n%v", d, set.Unread)
		}
	})
}
