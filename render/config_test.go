package render

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
	"github.com/quayside/quayside/internal/testing/yamltest"
	"github.com/quayside/quayside/lockfile"
)

// decodeYAML decodes YAML into the types of values of an Object.
func decodeYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := yamltest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.(map[string]any)
	return m
}

// TestConfigMerge applies a Subscription's config to pods, as OLM does.
func TestConfigMerge(t *testing.T) {
	cases := map[string]struct{ pod, config, want string }{
		"ok/env is replaced in place, new variables are appended": {
			"containers: [{name: a, env: [{name: X, value: '1'}, {name: Y, value: '2'}]}, {name: b}]",
			"env: [{name: Z, value: z}, {name: X, value: x}, {name: Z, value: zz}]",
			"containers: [{name: a, env: [{name: X, value: x}, {name: Y, value: '2'}, {name: Z, value: zz}]}, {name: b, env: [{name: Z, value: zz}, {name: X, value: x}]}]",
		},
		"ok/init containers are ignored": {
			"containers: [{name: a}]\ninitContainers: [{name: i}]", "env: [{name: X, value: x}]\nresources: {limits: {cpu: 1}}",
			"containers: [{name: a, env: [{name: X, value: x}], resources: {limits: {cpu: 1}}}]\ninitContainers: [{name: i}]",
		},
		"ok/envFrom and tolerations once": {
			"containers: [{name: a, envFrom: [{secretRef: {name: s}}]}]\ntolerations: [{key: a}]",
			"envFrom: [{secretRef: {name: s}}, {secretRef: {name: t}}, {secretRef: {name: t}}]\ntolerations: [{key: a}, {key: b}, {key: b}]",
			"containers: [{name: a, envFrom: [{secretRef: {name: s}}, {secretRef: {name: t}}]}]\ntolerations: [{key: a}, {key: b}]",
		},
		"ok/volumes and mounts by name, whatever the order": {
			"containers: [{name: a, volumeMounts: [{name: v, mountPath: /1}, {name: v, mountPath: /2}]}]\nvolumes: [{name: v, emptyDir: {}}]",
			"volumes: [{name: w, emptyDir: {}}, {name: v, secret: {secretName: s}}]\nvolumeMounts: [{name: w, mountPath: /w}, {name: v, mountPath: /3}]",
			"containers: [{name: a, volumeMounts: [{name: v, mountPath: /3}, {name: v, mountPath: /2}, {name: w, mountPath: /w}]}]\nvolumes: [{name: v, secret: {secretName: s}}, {name: w, emptyDir: {}}]",
		},
		"ok/two mounts of a new volume": {
			"containers: [{name: a}]", "volumes: [{name: w, emptyDir: {}}]\nvolumeMounts: [{name: w, mountPath: /1}, {name: w, mountPath: /2}]",
			"containers: [{name: a, volumeMounts: [{name: w, mountPath: /1}, {name: w, mountPath: /2}]}]\nvolumes: [{name: w, emptyDir: {}}]",
		},
		"ok/resources and nodeSelector as a whole": {
			"containers: [{name: a, resources: {limits: {cpu: 1}, requests: {cpu: 1}}}]\nnodeSelector: {a: b}", "resources: {limits: {memory: 1Gi}}\nnodeSelector: {}",
			"containers: [{name: a, resources: {limits: {memory: 1Gi}}}]\nnodeSelector: {}",
		},
		"ok/unset fields change nothing": {
			"containers: [{name: a, resources: {limits: {cpu: 1}}}]\naffinity: {nodeAffinity: {x: [1]}}", "selector: {matchLabels: {a: b}}\naffinity: null\nresources: null",
			"containers: [{name: a, resources: {limits: {cpu: 1}}}]\naffinity: {nodeAffinity: {x: [1]}}",
		},
		"ok/affinity part by part": {
			"containers: []\naffinity: {nodeAffinity: {x: [1]}, podAffinity: {q: [1]}, podAntiAffinity: {z: [1]}}", "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 2}]}, podAntiAffinity: {}}",
			"containers: []\naffinity: {nodeAffinity: {x: [1]}, podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 2}]}}",
		},
		"ok/an empty part removes only itself": {
			"containers: []\naffinity: {podAntiAffinity: {z: [1]}, nodeAffinity: {x: [1]}}", "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}", "containers: []\naffinity: {nodeAffinity: {x: [1]}}",
		},
		"ok/an empty affinity removes all": {"containers: []\naffinity: {nodeAffinity: {x: [1]}}", "affinity: {}", "containers: []"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(c.config))
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := parseConfig(data)
			if err != nil {
				t.Fatal(err)
			}
			o := k8s.New("apps/v1", "Deployment", "ns", "d")
			o["spec"] = map[string]any{"template": map[string]any{"spec": decodeYAML(t, c.pod)}}
			cfg.applyInPlace(o)
			if d := cmp.Diff(decodeYAML(t, c.want), k8s.Map(o, "spec", "template", "spec")); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestConfigAnnotationsDoNotOverride checks that existing annotations take precedence over the config.
func TestConfigAnnotationsDoNotOverride(t *testing.T) {
	cfg, err := parseConfig([]byte(`{"annotations":{"a":"config","b":"config"}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := Object(decodeYAML(t, "metadata: {annotations: {a: own}}\nspec: {template: {metadata: {annotations: {b: own}}}}"))
	cfg.applyInPlace(o)
	if d := cmp.Diff(map[string]any{"a": "own", "b": "config"}, k8s.Map(o, "metadata", "annotations")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]any{"a": "config", "b": "own"}, k8s.Map(o, "spec", "template", "metadata", "annotations")); d != "" {
		t.Error(d)
	}
}

func TestConfigErrors(t *testing.T) {
	_, err := parseConfig([]byte(`{"envs":[],"env":"x","volumes":[1],"affinity":[],"other":1}`))
	for _, want := range []string{"config.envs: unknown field", "config.other: unknown field", "config.env: expected a list", "config.volumes[0]: expected an object", "config.affinity: expected an object"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to contain %q", err, want)
		}
	}
}

func TestMirrors(t *testing.T) {
	mirrors := []Mirror{
		{Source: "quay.io/a", Mirror: "m.io/x"},
		{Source: "quay.io/a/b", Mirror: "m.io/y", DigestOnly: true},
		{Source: "docker.io/c", Mirror: "m.io/z", TagOnly: true},
		{Source: "*.example.com", Mirror: "m.io/e"},
		{Source: "*.example.com/org", Mirror: "m.io/o"},
	}
	cases := map[string]string{
		"quay.io/a/b:1": "m.io/x/b:1", "quay.io/a/b@sha256:0": "m.io/y@sha256:0", "quay.io/ab/c:1": "quay.io/ab/c:1", "docker.io/c/d:1": "m.io/z/d:1", "docker.io/c/d@sha256:0": "docker.io/c/d@sha256:0",
		"--image=quay.io/a/b:1": "--image=m.io/x/b:1", "a=quay.io/a/b:1,quay.io/a/c:2": "a=m.io/x/b:1,m.io/x/c:2", "https://quay.io/a/b": "https://quay.io/a/b",
		`{"i":"quay.io/a/b:1"}`: `{"i":"m.io/x/b:1"}`, "quay.io/a": "quay.io/a",
		"r.example.com/x:1": "m.io/e/x:1", "r.s.example.com/org/x:1": "m.io/o/x:1", "example.com/x:1": "example.com/x:1", "r.example.com.org/x:1": "r.example.com.org/x:1",
	}
	for in, want := range cases {
		if got := mirrorText(in, mirrors); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestDockerMirrors applies mirrors to short names of Docker Hub images.
func TestDockerMirrors(t *testing.T) {
	mirrors := []Mirror{{Source: "docker.io", Mirror: "m.io/hub"}, {Source: "docker.io/library/redis", Mirror: "m.io/redis"}, {Source: "docker.io/busybox", Mirror: "m.io/wrong"}}
	at := "@sha256:" + strings.Repeat("0", 64)
	for in, want := range map[string]string{
		"nginx": "m.io/hub/library/nginx", "nginx:1": "m.io/hub/library/nginx:1", "nginx:1" + at: "m.io/hub/library/nginx:1" + at, "nginx" + at: "m.io/hub/library/nginx" + at,
		"library/nginx": "m.io/hub/library/nginx", "docker.io/nginx": "m.io/hub/library/nginx", "index.docker.io/library/nginx:1": "m.io/hub/library/nginx:1",
		"org/tool:2": "m.io/hub/org/tool:2", "docker.io/org/tool": "m.io/hub/org/tool", "redis:7": "m.io/redis:7", "busybox": "m.io/hub/library/busybox",
		"quay.io/nginx": "quay.io/nginx", "localhost/nginx:1": "localhost/nginx:1", "host:5000/nginx:1": "host:5000/nginx:1",
	} {
		o := withMirrors(Object{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": in}}}}},
		}, mirrors)
		if got := k8s.Text(k8s.Items(o, "spec", "template", "spec", "containers")[0], "image"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"nginx:1": "nginx:1", "library/nginx:1": "library/nginx:1", "docker.io/nginx:1": "m.io/hub/library/nginx:1", "a=index.docker.io/redis:7": "a=m.io/redis:7", "/etc/nginx:ro": "/etc/nginx:ro",
	} {
		if got := mirrorText(in, mirrors); got != want {
			t.Errorf("text %q: got %q, want %q", in, got, want)
		}
	}
	if got := mirrorText("nginx:1 docker.io/nginx:1", nil); got != "nginx:1 docker.io/nginx:1" {
		t.Errorf("without mirrors: %q", got)
	}
}

// TestMountOfMissingVolume checks the error for a mount of a missing volume. The error contains the line in the
// lock or, for the config of a cluster, the cluster's name. Volumes of the bundle can be mounted.
func TestMountOfMissingVolume(t *testing.T) {
	dir := filepath.Join("testdata", "lantern", "bundle")
	lock := &lockfile.File{Pins: []lockfile.Pin{pinOf(loadBundle(t, dir), "op-ns")}}
	open := func(lockfile.Pin) (fs.FS, error) { return os.DirFS(dir), nil }
	lock.Pins[0].Pos = diag.Pos{File: "quayside.lock", Line: 7, Col: 3}
	mount := []byte(`{"volumeMounts":[{"mountPath":"/x","name":"nowhere"}]}`)
	_, err := All(lock, Options{Clusters: []profile.Cluster{{Name: "c", Config: mount}}}, open)
	if err == nil || !strings.Contains(err.Error(), `rendering cluster "c": config.volumeMounts: no volume "nowhere" in config.volumes or Deployment "`) {
		t.Errorf("in a cluster: got %v", err)
	}
	lock.Pins[0].Config = mount
	_, err = All(lock, Options{}, open)
	if err == nil || !strings.Contains(err.Error(), `quayside.lock:7:3: config.volumeMounts: no volume "nowhere"`) {
		t.Errorf("got %v", err)
	}
	lock.Pins[0].Config = []byte(`{"volumeMounts":[{"mountPath":"/x","name":"here"}],"volumes":[{"emptyDir":{},"name":"here"}]}`)
	if _, err = All(lock, Options{}, open); err != nil {
		t.Error(err)
	}
}
