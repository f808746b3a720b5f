package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quayside/quayside/cmd/quayside/internal/clitest"
)

// BenchmarkAdopt measures the CPU time and the peak memory of importing and inspecting two clusters: a real one
// with 16 operators, and one that consists of 19 renamed copies of the real one, each with its own CRDs.
func BenchmarkAdopt(b *testing.B) {
	bin, top, cache := programPath(b), b.TempDir(), b.TempDir()
	clitest.Unpack(b, filepath.Join(clitest.Corpus(b), "olm-clusters.tar.zst"), top)
	for _, times := range []int{1, 19} {
		dir := b.TempDir()
		operators := writeCopies(b, top, dir, times)
		measure(b, fmt.Sprintf("import-%d", operators), 0, func() resourceUsage {
			for _, name := range []string{"quayside.yaml", "quayside.lock", "subscriptions"} {
				check(b, os.RemoveAll(filepath.Join(dir, name)))
			}
			return runMeasured(b, cache, bin, "-C", dir, "import", "dump.json", "--offline", "--catalog", "olm/community=dir:community", "--catalog", "olm/lab=dir:lab")
		})
		measure(b, fmt.Sprintf("inspect-%d", operators), 0, func() resourceUsage {
			return runMeasured(b, cache, "sh", "-c", `"$@"; test $? -le 1`, "-", bin, "-C", dir, "adopt", "inspect", "dump.json", "--offline")
		})
	}
}

// writeCopies writes several renamed copies of the dump of a cluster and its catalogs to dir, and
// returns the number of operators.
func writeCopies(b *testing.B, top, dir string, times int) int {
	b.Helper()
	var dump struct{ Items []map[string]any }
	check(b, json.Unmarshal([]byte(read(b, top, "modes/before.json")), &dump))
	var sources []string // packages of the catalogs
	own, groups := map[string]bool{}, map[string]bool{}
	for _, o := range dump.Items {
		meta := o["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		spec, _ := o["spec"].(map[string]any)
		switch o["kind"] {
		case "Subscription":
			pkg := spec["name"].(string)
			own[pkg], own[pkg+"."+meta["namespace"].(string)], own["operators.coreos.com/"+pkg+"."+meta["namespace"].(string)] = true, true, true
			sources = append(sources, strings.TrimPrefix(spec["source"].(string), "catalog-")+"/"+pkg)
		case "CustomResourceDefinition", "APIService":
			groups[regexp.QuoteMeta(spec["group"].(string))] = !strings.HasSuffix(name, ".operators.coreos.com")
		case "Namespace":
			own[name] = !strings.HasPrefix(name, "kube-") && name != "default" && name != "olm"
		case "ClusterServiceVersion", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			own[name] = name != "admin" && name != "edit" && name != "view"
		}
	}
	var alternatives []string
	for group, renamed := range groups {
		if renamed {
			alternatives = append(alternatives, group)
		}
	}
	r := renamer{own: own, group: regexp.MustCompile(`(^|[^\w-])(` + strings.Join(alternatives, "|") + `)\b`), uid: regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)}
	out, err := os.Create(filepath.Join(dir, "dump.json"))
	check(b, err)
	defer out.Close()
	enc := json.NewEncoder(out)
	for r.i = range times {
		for _, o := range dump.Items {
			if meta := o["metadata"].(map[string]any); r.i == 0 || r.renames(meta["namespace"]) || r.renames(meta["name"]) {
				check(b, enc.Encode(r.value(o)))
			}
		}
		for _, source := range sources {
			r.catalog(b, read(b, top, "catalog-"+source+"/catalog.json"), filepath.Join(dir, fmt.Sprintf("%s-%d.json", source, r.i)))
		}
	}
	return times * len(sources)
}

// renamer renames cluster-scoped objects and other unique names.
type renamer struct {
	i          int
	own        map[string]bool
	group, uid *regexp.Regexp
}

func (r renamer) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[r.text(key)] = r.value(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.value(item)
		}
		return out
	case string:
		return r.text(v)
	}
	return v
}

// renames reports whether a name differs in each copy.
func (r renamer) renames(name any) bool {
	s, _ := name.(string)
	return s != r.text(s)
}

func (r renamer) text(s string) string {
	for _, made := range []string{"-service", "-service-cert", "-service-auth-reader"} { // generated for the Deployment
		if base, ok := strings.CutSuffix(s, made); ok && r.own[base] {
			return r.text(base) + made
		}
	}
	parts := strings.Split(s, ",")
	for _, part := range parts {
		if !r.own[part] {
			if !strings.ContainsAny(s, ".-") {
				return s
			}
			s = r.group.ReplaceAllString(s, fmt.Sprintf("${1}r%d.$2", r.i))
			return r.uid.ReplaceAllStringFunc(s, func(uid string) string { return fmt.Sprintf("%04x", r.i) + uid[4:] })
		}
	}
	suffix := fmt.Sprintf("-%d", r.i)
	return strings.Join(parts, suffix+",") + suffix
}

// catalog writes a renamed copy of a catalog whose bundles embed their manifests.
func (r renamer) catalog(b *testing.B, text, file string) {
	b.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var blob map[string]any
		check(b, dec.Decode(&blob))
		properties, _ := blob["properties"].([]any)
		for _, p := range properties {
			value, _ := p.(map[string]any)["value"].(map[string]any)
			data, ok := value["data"].(string)
			if !ok {
				continue
			}
			manifest, err := base64.StdEncoding.DecodeString(data)
			check(b, err)
			var o map[string]any
			check(b, json.Unmarshal(manifest, &o))
			manifest, err = json.Marshal(r.value(o))
			check(b, err)
			value["data"] = base64.StdEncoding.EncodeToString(manifest)
		}
		check(b, enc.Encode(r.value(blob)))
	}
	put(b, filepath.Dir(file), filepath.Base(file), out.String())
}
