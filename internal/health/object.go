package health

import (
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/sanitize"
)

// groupKind returns "group/Kind", or "/Kind" for the core group.
func groupKind(o map[string]any) string {
	return k8s.Group(k8s.Text(o, "apiVersion")) + "/" + k8s.Text(o, "kind")
}

const maxMessage = 400 // maximum bytes of a message

// clipMessage returns s as one line, cut to maxMessage bytes.
func clipMessage(s string) string { return sanitize.TruncateLine(s, maxMessage) }
