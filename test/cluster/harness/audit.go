package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Request is one request in the audit log of the API server.
type Request struct {
	Verb     string // "list", "watch", "patch"
	Resource string // "configmaps", "installations.quayside.dev/status"; for other requests the path
	Code     int    // 0: none yet
	At       time.Time
}

// String returns "patch installations.quayside.dev/status 200".
func (r Request) String() string { return fmt.Sprintf("%s %s %d", r.Verb, r.Resource, r.Code) }

// auditPolicy returns a policy that logs the completed requests of these users, and no others.
func auditPolicy(users []string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []any{map[string]any{"level": "Metadata", "users": users}, map[string]any{"level": "None"}},
	})
}

// auditEvent contains the decoded fields of an Event of audit.k8s.io/v1.
type auditEvent struct {
	AuditID                  string
	Verb                     string
	RequestURI               string
	RequestReceivedTimestamp time.Time
	ResponseStatus           struct{ Code int }
	ObjectRef                *struct{ Resource, APIGroup, Subresource string }
}

// Requests returns the requests of the audited users since a time, in order of arrival. A watch is
// included as soon as it has started.
func (c *Cluster) Requests(t testing.TB, since time.Time) []Request {
	t.Helper()
	text, err := os.ReadFile(c.file("audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Request
	seen := map[string]bool{} // a watch is logged when it begins and when it ends
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the server is still writing it
		}
		if !seen[e.AuditID] && e.RequestReceivedTimestamp.After(since) {
			seen[e.AuditID] = true
			out = append(out, e.request())
		}
	}
	slices.SortStableFunc(out, func(a, b Request) int { return a.At.Compare(b.At) })
	return out
}

func (e auditEvent) request() Request {
	r := Request{Verb: e.Verb, Code: e.ResponseStatus.Code, At: e.RequestReceivedTimestamp}
	if e.ObjectRef == nil {
		r.Resource, _, _ = strings.Cut(e.RequestURI, "?")
		return r
	}
	r.Resource = e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		r.Resource += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	return r
}
