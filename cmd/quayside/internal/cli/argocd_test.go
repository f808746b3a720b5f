package cli_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const argoFiles = "../../../../ci/argocd"

// TestArgoPlugin runs the plugin's generate command as Argo CD does: in a copy of the repository without
// history, with the Application's parameter in an environment variable.
func TestArgoPlugin(t *testing.T) {
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Discover struct{ FileName string }
			Generate struct{ Command, Args []string }
			// The name of the variable is derived from the name of the parameter.
			Parameters struct {
				Static []struct{ Name, Title, Tooltip string }
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, argoFiles, "plugin.yaml")), &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "argoproj.io/v1alpha1" || plugin.Kind != "ConfigManagementPlugin" || plugin.Metadata.Name != "quayside" || plugin.Spec.Discover.FileName != "quayside.lock" || plugin.Spec.Parameters.Static[0].Name != "overlay" {
		t.Errorf("plugin %+v", plugin)
	}
	one := quickstart(t)
	two := quickstart(t)
	put(t, two, "quayside.yaml", strings.Replace(read(t, two, "quayside.yaml"), "spec:\n", "spec:\n  clusters:\n  - {name: a, operators: [\"vault/*\", \"my-etcd/*\"]}\n  - {name: b}\n", 1))
	mustRun(t, two, "render", "--offline")
	cache := t.TempDir()
	generate := func(dir string, env ...string) (string, string, error) {
		args := append(plugin.Spec.Generate.Command[1:], plugin.Spec.Generate.Args...)
		cmd := exec.CommandContext(t.Context(), plugin.Spec.Generate.Command[0], args...)
		var out, talk bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &talk
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "XDG_CACHE_HOME=" + cache}, env...)
		err := cmd.Run()
		return out.String(), talk.String(), err
	}
	for _, c := range []struct {
		dir, cluster string
		env          []string
	}{
		{one, "", nil},
		{two, "a", []string{"PARAM_OVERLAY=a"}},
		{two, "b", []string{"ARGOCD_ENV_OVERLAY=b"}},
		{two, "a", []string{"ARGOCD_ENV_OVERLAY=b", "PARAM_OVERLAY=a"}},
	} {
		got, talk, err := generate(c.dir, c.env...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.env, err, talk)
		}
		want := mustRun(t, c.dir, "render", "--stdout", "--offline", "--overlay="+c.cluster).stdout
		if got != want || !strings.Contains(got, "kind: Deployment") {
			t.Errorf("%q: %d bytes, want the overlay of %q with %d", c.env, len(got), c.cluster, len(want))
		}
	}
	for _, env := range [][]string{{"PARAM_OVERLAY=nothing"}, {"PARAM_OVERLAY=a --check"}, {"PARAM_OVERLAY=$(touch pwned)"}, nil} {
		if got, talk, err := generate(two, env...); err == nil || got != "" || !strings.Contains(talk, "cluster") {
			t.Errorf("%q: %v, %q\n%s", env, err, got, talk)
		}
	}
	if _, err := os.Stat(filepath.Join(two, "pwned")); err == nil {
		t.Error("a parameter was run")
	}
}

// repoServer is the part of the repo-server's Deployment that the component changes.
type repoServer struct {
	Spec struct {
		Template struct {
			Spec struct {
				InitContainers, Containers []argoContainer
				Volumes                    []struct {
					Name      string
					ConfigMap *struct{ Name string }
				}
			}
		}
	}
}

type argoContainer struct {
	Name, Image     string
	Command, Args   []string
	Env             []struct{ Name, Value string }
	VolumeMounts    []struct{ Name, MountPath string }
	SecurityContext struct{ RunAsUser int }
}

// argoSettings is the ConfigMap with the plugin.
type argoSettings struct {
	Metadata struct{ Name string }
	Data     map[string]string
}

// buildSidecar builds a kustomization that adds the component to a repo-server.
func buildSidecar(t *testing.T, kustomization string) (server repoServer, settings argoSettings) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "quayside"), os.DirFS(argoFiles)); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "kustomization.yaml", kustomization)
	put(t, dir, "argocd.yaml", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      initContainers: [{name: copyutil, image: argocd}]
      containers: [{name: argocd-repo-server, image: argocd}]
      volumes: [{name: var-files, emptyDir: {}}, {name: plugins, emptyDir: {}}]
`)
	built, err := kustomizeLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(built), "\n---\n") {
		var into any = &server
		if strings.Contains(doc, "kind: ConfigMap") {
			into = &settings
		}
		if err := yaml.Unmarshal([]byte(doc), into); err != nil {
			t.Fatal(err)
		}
	}
	return server, settings
}

// TestArgoSidecar checks the component in its pod, with a downloaded program and, as in
// docs/ci.md, with an image that contains the program.
func TestArgoSidecar(t *testing.T) {
	for name, c := range map[string]struct {
		kustomization string
		inits         int
		path          string
	}{
		"with a release":        {"namespace: argocd\nresources: [argocd.yaml]\ncomponents: [quayside]\n", 2, "/quayside:/usr/bin:/bin"},
		"with a separate image": {yamlBlock(t, "ci.md", "$patch: delete"), 1, "/usr/local/bin:/usr/bin:/bin"},
	} {
		t.Run(name, func(t *testing.T) {
			server, settings := buildSidecar(t, c.kustomization)
			if settings.Data["plugin.yaml"] != read(t, argoFiles, "plugin.yaml") {
				t.Errorf("the ConfigMap has %q", settings.Data)
			}
			pod := server.Spec.Template.Spec
			if len(pod.InitContainers) != c.inits || len(pod.Containers) != 2 {
				t.Fatalf("the pod is %+v", pod)
			}
			volumes := map[string]bool{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = false
				if v.ConfigMap != nil && v.ConfigMap.Name != settings.Metadata.Name {
					t.Errorf("volume %s is of %s, want %s", v.Name, v.ConfigMap.Name, settings.Metadata.Name)
				}
			}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				if c.Name != "quayside" {
					continue
				}
				if c.SecurityContext.RunAsUser != 999 {
					t.Errorf("the plugin runs as %d, want Argo CD's 999, whose socket it serves", c.SecurityContext.RunAsUser)
				}
				for _, m := range c.VolumeMounts {
					if _, ok := volumes[m.Name]; !ok {
						t.Errorf("no volume %s", m.Name)
					}
					volumes[m.Name] = true
				}
			}
			for name, mounted := range volumes {
				if !mounted {
					t.Errorf("unused volume %s", name)
				}
			}
			for _, own := range pod.Containers {
				if own.Name == "quayside" && (len(own.Env) != 2 || own.Env[0].Value != c.path) {
					t.Errorf("the plugin's variables are %v, want the path %s", own.Env, c.path)
				}
			}
		})
	}
}

// yamlBlock returns the only YAML block with the given text on a page.
func yamlBlock(t *testing.T, name, text string) string {
	t.Helper()
	var found []string
	for _, b := range strings.Split(read(t, "../../../../docs", name), "```yaml\n")[1:] {
		if b, _, _ = strings.Cut(b, "```"); strings.Contains(b, text) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q", name, len(found), text)
	}
	return found[0]
}

// TestArgoInit runs the init container that downloads the program, with empty directories instead
// of the pod's volumes.
func TestArgoInit(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil || runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("the script fetches the program for linux/amd64 with curl")
	}
	server, _ := buildSidecar(t, "namespace: argocd\nresources: [argocd.yaml]\ncomponents: [quayside]\n")
	var init argoContainer
	for _, c := range server.Spec.Template.Spec.InitContainers {
		if c.Name == "quayside" {
			init = c
		}
	}
	address, sum := serveRelease(t)
	fetch := func(sum string) (program, log string, err error) {
		pod := t.TempDir()
		for _, m := range init.VolumeMounts {
			if err := os.Mkdir(filepath.Join(pod, m.MountPath), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		script := strings.NewReplacer("/tmp/", pod+"/tmp/", " /quayside ", " "+pod+"/quayside ").Replace(init.Args[0])
		cmd := exec.CommandContext(t.Context(), init.Command[0], append(init.Command[1:], script)...)
		cmd.Dir = t.TempDir()
		for _, v := range init.Env {
			value := map[string]string{"RELEASES": address, "SHA256": sum}[v.Name]
			cmd.Env = append(cmd.Env, v.Name+"="+cmp.Or(value, v.Value))
		}
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if entries, e := os.ReadDir(cmd.Dir); e != nil || len(entries) > 0 {
			t.Errorf("the script leaves %v, %v", entries, e)
		}
		return filepath.Join(pod, "quayside", "quayside"), string(out), err
	}
	program, log, err := fetch(sum)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "quayside ") {
		t.Errorf("the downloaded program prints %q, %v", out, err)
	}
	program, log, err = fetch(strings.Repeat("0", 64))
	if _, found := os.Stat(program); err == nil || found == nil {
		t.Errorf("with another digest: %v\n%s", err, log)
	}
}
