package report

import (
	"strings"

	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/kobj"
)

// groupKind returns "group/Kind", "/Kind" for the core group.
func groupKind(o map[string]any) string {
	return groupOf(kobj.Text(o, "apiVersion")) + "/" + kobj.Text(o, "kind")
}

func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

const maxMessage = 400 // bytes

// short returns s on one line and at most maxMessage bytes long.
func short(s string) string { return inert.Clip(s, maxMessage) }
