package layers_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wordingRules returns patterns that make comments hard to read, with the allowed number of
// occurrences in 1,000 words.
func wordingRules() []wordingRule {
	return []wordingRule{
		{regexp.MustCompile(`(?i)\b(what|who|whom|whose|whoever|whatever)\b`), 2, "name the thing instead of a clause with what or who"},
		{regexp.MustCompile(`(?i)\b(says?|said|tells?|told|speaks?|knows?)\b`), 1, "code does not say, tell or know"},
		{regexp.MustCompile(`(?i)\b(of|in|for|from|to|with|by|at|on|under) (which|what|whom|whose)\b`), 1, "split the sentence"},
	}
}

type wordingRule struct {
	pattern  *regexp.Regexp
	perMille int
	advice   string
}

// addedComment is the comment of a line that a branch adds.
type addedComment struct {
	place, text string
}

// TestWording checks the comments of lines that were changed since the merge base
// with main. A few hits are allowed in any change.
func TestWording(t *testing.T) {
	base := mergeBase()
	if base == "" {
		t.Skip("no branch main to compare with")
	}
	diff, err := exec.Command("git", "diff", "-U0", "--no-color", base, "--", "*.go", ":!*_test.go").Output()
	if err != nil {
		t.Fatalf("git diff: %v", err)
	}
	for _, fault := range wordingFaults(addedComments(string(diff))) {
		t.Error(fault)
	}
}

// mergeBase returns the merge base of the current branch and main, or "".
func mergeBase() string {
	for _, main := range []string{"origin/main", "main"} {
		if out, err := exec.Command("git", "merge-base", "HEAD", main).Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// addedComments returns the comments in the added lines of a diff without context.
func addedComments(diff string) []addedComment {
	hunk := regexp.MustCompile(`^@@ -\S+ \+(\d+)`)
	comment := regexp.MustCompile(`(?:^|\s)//\s?(.*)$`)
	var out []addedComment
	file, line := "", 0
	for l := range strings.Lines(diff) {
		l = strings.TrimSuffix(l, "\n")
		if name, ok := strings.CutPrefix(l, "+++ b/"); ok {
			file = name
			continue
		}
		if m := hunk.FindStringSubmatch(l); m != nil {
			line, _ = strconv.Atoi(m[1])
			continue
		}
		added, ok := strings.CutPrefix(l, "+")
		if !ok {
			continue
		}
		if m := comment.FindStringSubmatch(added); m != nil && !slices.ContainsFunc([]string{"go:", "nolint", "+build"}, func(p string) bool { return strings.HasPrefix(m[1], p) }) {
			out = append(out, addedComment{fmt.Sprintf("%s:%d", file, line), m[1]})
		}
		line++
	}
	return out
}

// wordingFaults returns the comments that match a rule, for each rule with too many matches.
func wordingFaults(comments []addedComment) []string {
	const free = 2
	words := 0
	for _, c := range comments {
		words += len(strings.Fields(c.text))
	}
	var out []string
	for _, r := range wordingRules() {
		var hits []string
		for _, c := range comments {
			if r.pattern.MatchString(c.text) {
				hits = append(hits, c.place+": "+r.advice+": "+c.text)
			}
		}
		if len(hits) > free+words*r.perMille/1000 {
			out = append(out, hits...)
		}
	}
	return out
}

func TestWordingFaults(t *testing.T) {
	const diff = `diff --git a/x.go b/x.go
--- a/x.go
+++ b/x.go
@@ -1,0 +3,4 @@ func f() {
+// f says what is wanted of what follows.
+	x := "// what" // who knows what
+//go:embed what
+// The rendered tree.
@@ -9 +20 @@
+// whom it tells, and for which of them
`
	comments := addedComments(diff)
	if len(comments) != 4 || comments[0].place != "x.go:3" || comments[3].place != "x.go:20" {
		t.Fatalf("comments: %v", comments)
	}
	faults := wordingFaults(comments)
	if len(faults) == 0 || !strings.HasPrefix(faults[0], "x.go:3: name the thing") {
		t.Errorf("faults: %q", faults)
	}
	if got := wordingFaults(comments[2:3]); len(got) != 0 {
		t.Errorf("faults of a plain comment: %q", got)
	}
}
