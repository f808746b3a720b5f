package forge_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPicture posts the comment for the example upgrade in README.md. If QUAYSIDE_PICTURES is set, it also
// saves a screenshot of the comment as docs/img/pull-request.png.
func TestPicture(t *testing.T) {
	pictures := os.Getenv("QUAYSIDE_PICTURES")
	chromium, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	if pictures == "" || err != nil {
		t.Skip("QUAYSIDE_PICTURES is not set, or Chromium is not installed")
	}
	const title = "Update memcached-operator from 0.0.1 to 0.0.2"
	f := start(t)
	owner, bot := f.user(t, "platform", "all"), f.user(t, "quayside-bot", "write:repository,write:issue,read:user")
	f.must(t, owner, http.MethodPost, "user/repos", map[string]any{"name": "fleet", "default_branch": "main"}, nil)
	f.must(t, owner, http.MethodPut, "repos/platform/fleet/collaborators/quayside-bot", map[string]any{"permission": "write"}, nil)

	w := clone(t, f, "platform/fleet")
	if err := os.CopyFS(filepath.Join(w.dir, "bundles"), os.DirFS(filepath.Join(repository(t), "examples/quickstart/catalog-src"))); err != nil {
		t.Fatal(err)
	}
	const csv = "bundles/memcached-operator/0.0.2/manifests/memcached-operator.clusterserviceversion.yaml"
	data, err := os.ReadFile(filepath.Join(w.dir, csv))
	if err != nil {
		t.Fatal(err)
	}
	const at = "resources: [poddisruptionbudgets]\n"
	before, after, found := strings.Cut(string(data), at)
	verbs, after, _ := strings.Cut(after, "\n")
	if !found {
		t.Fatalf("%s has no %q", csv, at)
	}
	w.write(t, csv, before+at+verbs+"\n        - apiGroups: [rbac.authorization.k8s.io]\n          resources: [roles]\n          verbs: [bind, escalate]\n"+after)
	w.must(t, "", "-C", ".", "init", "--catalog", "bundles:bundles", "--kubernetes", "1.34")
	w.must(t, "", "add", "memcached-operator@0.0.1")
	subscription, err := os.ReadFile(filepath.Join(w.dir, "subscriptions/memcached-operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, "subscriptions/memcached-operator.yaml", regexp.MustCompile(`(?m)^  version: .*\n`).ReplaceAllString(string(subscription), ""))
	w.must(t, "", "resolve")
	w.must(t, "", "render")
	w.commit(t, "Install memcached-operator 0.0.1")
	w.git(t, "push", "-q", strings.Replace(w.remote, "://", "://platform:"+owner+"@", 1), "main")
	w.git(t, "checkout", "-q", "-b", "upgrade")
	w.must(t, "", "upgrade")
	w.commit(t, title)
	w.git(t, "push", "-q", strings.Replace(w.remote, "://", "://quayside-bot:"+bot+"@", 1), "upgrade")
	f.must(t, bot, http.MethodPost, "repos/platform/fleet/pulls", map[string]any{"title": title, "head": "upgrade", "base": "main"}, nil)
	if _, talk, code := w.run(t, bot, "diff", "--base", "main", "--exit-zero", "--comment", "1", "--forge", "gitea"); code != 4 {
		t.Fatalf("exit code %d, want 4, because the policy denies a critical finding\n%s", code, talk)
	}

	got, err := http.Get(f.url + "/platform/fleet/pulls/1")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	page, err := io.ReadAll(got.Body)
	if err != nil || !bytes.Contains(page, []byte("escalate or bind roles")) {
		t.Fatalf("%s, %v, without the finding", got.Status, err)
	}
	comment := regexp.MustCompile(`(?s)<h3[^>]*>quayside:.*?</div>\s*<div id="issuecomment-\d+-raw"`).Find(page)
	comment, _, found = bytes.Cut(comment, []byte("</div>"))
	if !found {
		t.Fatal("the page has no comment")
	}
	// Gitea's own style is not part of its Go module.
	file, picture := filepath.Join(t.TempDir(), "page.html"), filepath.Join(pictures, "pull-request.png")
	if err := os.WriteFile(file, fmt.Appendf(nil, commentPage, title, comment), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--window-size=880,604", "--screenshot="+picture, "file://"+file).CombinedOutput()
	if _, missing := os.Stat(picture); err != nil || missing != nil {
		t.Fatalf("%v, %v\n%s", err, missing, out)
	}
}

// commentPage contains a title and a comment.
const commentPage = `<!doctype html><html lang="en"><meta charset="utf-8"><style>
body { font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1f2328; background: #fff; margin: 16px; width: 848px; }
header { font-size: 20px; margin-bottom: 12px; } header span { color: #59636e; }
article { border: 1px solid #d1d9e0; border-radius: 6px; } article > p { background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; margin: 0; padding: 8px 16px; color: #59636e; } b { color: #1f2328; }
section { padding: 4px 16px 12px; overflow-wrap: anywhere; } h3 { font-size: 17px; margin: 12px 0 8px; } h4 { margin: 12px 0 4px; } p, ul { margin: 6px 0; } ul { padding-left: 24px; }
code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; background: #eff1f3; border-radius: 6px; padding: 2px 5px; } pre { background: #f6f8fa; padding: 10px; } a { color: #0969da; text-decoration: none; }
table { border-collapse: collapse; margin: 8px 0; } th, td { border: 1px solid #d1d9e0; padding: 4px 12px; }
</style><header>%s <span>#1</span></header><article><p><b>quayside-bot</b> commented</p><section>%s</section></article></html>`
