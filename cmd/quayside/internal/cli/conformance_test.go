package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/testing/goldentest"
	"github.com/quayside/quayside/lockfile"
)

const exceptions = "testdata/conformance.tsv"

// solvedProblem is one line of the conformance files, as in package resolve.
type solvedProblem struct {
	ID                     string
	GlobalCatalogNamespace string
	Catalogs               map[string]struct {
		Namespace string
		Priority  int
		FBC       []json.RawMessage
		Corpus    string
	}
	Objects []json.RawMessage
	Expect  struct {
		Namespaces []struct {
			Namespace string
			Installed []struct {
				CSV           string
				Subscriptions []string
			}
			Alternatives []struct{ Installed []string }
		}
	}
}

// TestConformanceOfCommand resolves the problems of QUAYSIDE_CONFORMANCE with the command line. The locks must
// match resolve/testdata/conformance/problems.tsv, except for the differences and their reasons in
// testdata/conformance.tsv. Without -whole, it tests all problems in the directory nights, and a tenth of the
// others.
func TestConformanceOfCommand(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CONFORMANCE")
	if root == "" {
		t.Skip("QUAYSIDE_CONFORMANCE is unset: no problems to solve")
	}
	answers := map[string][]string{} // OLM's and quayside's answer, by problem and namespace
	for _, row := range readTSV(t, "../../../../resolve/testdata/conformance/problems.tsv") {
		answers[row[0]+" "+row[1]] = row[2:4]
	}
	known, found := map[string]string{}, []string{}
	for _, row := range readTSV(t, exceptions) {
		known[row[0]] = row[1]
	}
	n, checked := 0, map[string]bool{}
	for _, name := range []string{"resolve/handmade.jsonl", "resolve/random.jsonl", "nights/nasty.jsonl"} {
		for _, p := range readSolved(t, filepath.Join(root, name)) {
			if n++; !*wholeCorpus && n%10 > 0 && !strings.HasPrefix(name, "nights/") {
				continue
			}
			checked[p.ID] = true
			reason, fault := p.compare(t, answers)
			if reason != "" {
				found = append(found, p.ID+"\t"+reason)
			}
			if fault == "" && !goldentest.Update() && known[p.ID] != reason {
				fault = fmt.Sprintf("differs because of %q, the table has %q", reason, known[p.ID])
			}
			if fault != "" {
				t.Errorf("%s: %s", p.ID, fault)
			}
		}
	}
	if goldentest.Update() && *wholeCorpus {
		text := "# problem\treason\n" + strings.Join(found, "\n") + "\n"
		check(t, os.WriteFile(exceptions, []byte(text), 0o644))
	}
	t.Logf("%d problems, %d differ for a reason", len(checked), len(found))
}

func readTSV(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile(name)
	check(t, err)
	var out [][]string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	return out
}

func readSolved(t *testing.T, name string) []solvedProblem {
	t.Helper()
	data, err := os.ReadFile(name)
	check(t, err)
	var out []solvedProblem
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Buffer(nil, 64<<20); lines.Scan(); {
		var p solvedProblem
		check(t, json.Unmarshal(lines.Bytes(), &p))
		out = append(out, p)
	}
	check(t, lines.Err())
	return out
}

// compare resolves p and compares the lock with the answers. It returns the rule that explains a
// difference, or a fault.
func (p *solvedProblem) compare(t *testing.T, answers map[string][]string) (reason, fault string) {
	dir := t.TempDir()
	var catalogs []map[string]any
	for name, c := range p.Catalogs {
		if c.Corpus != "" {
			return "", ""
		}
		catalogs = append(catalogs, map[string]any{"name": name, "namespace": c.Namespace, "priority": c.Priority, "source": "dir:catalogs/" + name})
		var text bytes.Buffer
		for _, o := range c.FBC {
			text.Write(append(o, '\n'))
		}
		put(t, dir, "catalogs/"+name+"/catalog.json", text.String())
	}
	encode := func(v any) string {
		text, err := json.Marshal(v)
		check(t, err)
		return string(text)
	}
	put(t, dir, "quayside.yaml", encode(map[string]any{"apiVersion": "quayside.dev/v1alpha1", "kind": "Workspace", "spec": map[string]any{
		"catalogs": catalogs, "globalCatalogNamespaces": []string{p.GlobalCatalogNamespace}, "requirements": "warn", "allowOverlap": true, "sharedDependencies": false,
	}}))
	put(t, dir, "subscriptions/objects.json", encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": p.Objects}))
	args := []string{"resolve", "--offline", "--upgrade", "--hops=all", "--keep-going"}
	for _, raw := range p.Objects {
		var o struct {
			Kind     string
			Metadata struct{ Namespace string }
			Spec     struct{ Name, InstallPlanApproval string }
		}
		check(t, json.Unmarshal(raw, &o))
		if o.Kind == "Subscription" && o.Spec.InstallPlanApproval == "Manual" {
			args = append(args, "--upgrade="+o.Metadata.Namespace+"/"+o.Spec.Name)
		}
	}
	out := quayside(t, dir, args...)
	switch {
	case strings.Contains(out.stderr, "is declared twice"):
		return "two declarations of a package in one namespace are an error of the workspace", ""
	case strings.Contains(out.stderr, "does not contain the bundle's content"):
		reason = "rule 17: nothing is known of the content of an installed version that the catalog has dropped"
		if out.code != 3 {
			return reason, fmt.Sprintf("exit code %d, want 3: %s", out.code, out.stderr)
		}
		return reason, ""
	}
	data, err := os.ReadFile(filepath.Join(dir, "quayside.lock"))
	if err != nil {
		return "", fmt.Sprintf("no lock: %s", out.stderr)
	}
	lock, err := lockfile.Parse("quayside.lock", data)
	check(t, err)
	for _, ns := range p.Expect.Namespaces {
		got, want := []string{}, [][]string{}
		for _, pin := range lock.Pins {
			if pin.Namespace == ns.Namespace {
				got = append(got, pin.Bundle)
			}
		}
		answer, ok := answers[p.ID+" "+ns.Namespace]
		switch {
		case !ok:
			continue // other problems
		case answer[0] == "conflict" && answer[1] == "=", answer[1] == "conflict":
			if out.code != 3 && out.code != 2 {
				return "", fmt.Sprintf("exit code %d, want a conflict", out.code)
			}
			continue
		case strings.HasPrefix(answer[0], "by chance") && answer[1] == "=":
			free := map[string]bool{} // without a subscription, hence without a pin
			var installed []string
			for _, i := range ns.Installed {
				free[i.CSV] = len(i.Subscriptions) == 0
				installed = append(installed, i.CSV)
			}
			want = append(want, installed)
			for _, a := range ns.Alternatives {
				want = append(want, a.Installed)
			}
			for i := range want {
				want[i] = slices.DeleteFunc(want[i], func(csv string) bool { return free[csv] })
			}
		case answer[1] == "=":
			want = append(want, strings.Fields(strings.TrimPrefix(answer[0], "nothing")))
		default:
			end, _, _ := strings.Cut(answer[1], "; ")
			var bundles []string
			for part := range strings.SplitSeq(strings.TrimPrefix(end, "nothing"), ", ") {
				bundles = append(bundles, strings.Fields(part + " ")[:min(1, len(strings.Fields(part)))]...)
			}
			want = append(want, bundles)
		}
		slices.Sort(got)
		if !slices.ContainsFunc(want, func(w []string) bool {
			slices.Sort(w)
			return slices.Equal(w, got)
		}) {
			return "", fmt.Sprintf("namespace %s: got %q, want one of %q\n%s", ns.Namespace, got, want, out.stderr)
		}
	}
	return "", ""
}
