package survey_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// generated returns a repository with about n files: operators with a base and two overlays, an Application for
// one overlay of each, and manifests of other kinds.
func generated(b *testing.B, n int) fs.FS {
	b.Helper()
	files := map[string]string{}
	for i := 0; len(files) < n; i++ {
		dir := fmt.Sprintf("apps/a%d", i)
		if i%20 == 0 {
			dir = fmt.Sprintf("operators/o%d", i)
			files[dir+"/base/kustomization.yaml"] = "resources: [s.yaml]\n"
			files[dir+"/base/s.yaml"] = request(fmt.Sprintf("o%d", i))
			for _, env := range []string{"dev", "prod"} {
				files[dir+"/overlays/"+env+"/kustomization.yaml"] = "resources: [../../base]\nnamespace: " + env + "\n"
			}
			files[fmt.Sprintf("argo/a%d.yaml", i)] = fmt.Sprintf(argo, fmt.Sprintf("a%d", i), "", dir+"/overlays/prod", false)
		}
		files[dir+"/kustomization.yaml"] = "resources: [deployment.yaml, config.yaml]\n"
		files[dir+"/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n" + strings.Repeat("# a line of a manifest of an application\n", 50)
		files[dir+"/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + strings.Repeat("  key: value of a setting\n", 20)
	}
	dir := b.TempDir() // a file system in memory lists directories slowly
	if err := os.CopyFS(dir, filesOf(files)); err != nil {
		b.Fatal(err)
	}
	return os.DirFS(dir)
}

// BenchmarkSurvey surveys generated repositories.
func BenchmarkSurvey(b *testing.B) {
	for _, n := range []int{1_000, 16_000} {
		files := generated(b, n)
		b.Run(fmt.Sprintf("%d files", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				s := newSurvey(b, files)
				if p := s.Propose(nil); len(p.Environments) != 0 {
					b.Fatal(p.Environments)
				}
			}
		})
	}
}
