package diff

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestRulesAreDocumented keeps the reference of rules for users.
func TestRulesAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What `quayside diff` looks for\n\nEvery finding has a rule, and every rule a severity that the workspace can change (`off` silences it). " +
		"A finding that is narrower than its rule, such as a permission in one namespace only or a field of `status`, may be milder; none is worse.\n\n" +
		"- **critical**: loses data, is refused for good, or gives the cluster away\n- **high**: breaks something, or gives power away\n- **medium**: a reviewer should look\n" +
		"- **low**: a change of behaviour that is usual in an upgrade\n- **info**: worth knowing; nothing breaks\n")
	family := ""
	for _, r := range Rules() {
		if f, _, _ := strings.Cut(r.ID, "."); f != family {
			family = f
			fmt.Fprintf(&b, "\n## %s\n\n| Rule | Severity | What | Why it matters |\n|---|---|---|---|\n", family)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, r.Severity, r.Title, strings.ReplaceAll(r.Why, "|", "\\|"))
	}
	golden(t, filepath.Join("..", "docs", "diff-rules.md"), []byte(b.String()))
}
