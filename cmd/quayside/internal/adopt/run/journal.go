package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/internal/k8s"
)

// Files is the directory of a journal.
type Files interface {
	// Read returns the content of a file, or nil if the file does not exist.
	Read(name string) ([]byte, error)
	// Write writes a file atomically, and creates its directories.
	Write(name string, data []byte) error
	// Append appends data to a file. When it returns, the data is on disk.
	Append(name string, data []byte) error
}

// Event is the kind of an entry in a journal.
type Event string

// The events of a journal.
const (
	Opened  Event = "opened"  // first entry; Plan identifies the plan
	Began   Event = "began"   // the preconditions of a step are fulfilled, and it begins
	Intends Event = "intends" // the request of an action is about to be sent
	Did     Event = "did"     // an action is done
	Ended   Event = "ended"   // a step is done: its postconditions are fulfilled
	Failed  Event = "failed"  // a step stopped, for the reason in Message
	Probed  Event = "probed"  // a run with probes ended, with the results in Probes
	Skipped Event = "skipped" // Finding no longer stops the plan, because the user accepted it with the reason in Message
)

// Entry is one line of a journal.
type Entry struct {
	Time    time.Time    `json:"time"`
	Event   Event        `json:"event"`
	Schema  int          `json:"schema,omitempty"` // schema version of the journal; only in the first entry
	Plan    string       `json:"plan,omitempty"`   // digest of the plan; only in the first entry
	Step    int          `json:"step,omitempty"`
	Action  int          `json:"action,omitempty"` // number of the action in the step, from 1
	Do      plan.Verb    `json:"verb,omitempty"`
	Object  *k8s.Ref     `json:"object,omitempty"`
	UID     string       `json:"uid,omitempty"`             // UID of the object: before the action for Intends, after it for Did
	Version string       `json:"resourceVersion,omitempty"` // resourceVersion of the object at that time
	Digest  string       `json:"digest,omitempty"`          // digest of the object's backup
	Outcome plan.Outcome `json:"outcome,omitempty"`
	Message string       `json:"message,omitempty"`

	Finding *verify.Finding      `json:"finding,omitempty"` // of event Skipped
	Probes  []verify.ProbeResult `json:"probes,omitempty"`  // of event Probed
}

// logName is the name of the file with a journal's entries.
const logName = "log.jsonl"

// journalSchema is the only supported schema version of journals.
const journalSchema = 2

// maxLog is the maximum size of a journal, in bytes.
const maxLog = 64 << 20

// Journal records the execution of a plan, and the state of the cluster before it.
type Journal struct {
	files   Files
	digest  string
	entries []Entry
	torn    bool // whether the last line is incomplete
}

// OpenJournal reads the journal of a plan. If there are no entries, the journal is empty. If the journal
// belongs to another plan, OpenJournal returns an error. It writes nothing.
func OpenJournal(files Files, p *plan.Plan) (*Journal, error) {
	j := &Journal{files: files, digest: Digest(p)}
	data, err := files.Read(logName)
	if err != nil {
		return nil, err
	}
	if len(data) > maxLog {
		return nil, fmt.Errorf("%s: exceeds the limit of %d bytes", logName, maxLog)
	}
	lines := bytes.Split(data, []byte("\n"))
	j.torn = len(lines[len(lines)-1]) > 0 // a line is complete only with its newline
	for i, line := range lines[:len(lines)-1] {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s:%d: not a journal entry: %w", logName, i+1, err)
		}
		j.entries = append(j.entries, e)
	}
	if len(j.entries) > 0 && j.entries[0].Schema != journalSchema {
		return nil, fmt.Errorf("%s: the journal has schema %d; this version supports %d: finish the plan with the program that began it", logName, j.entries[0].Schema, journalSchema)
	}
	if len(j.entries) > 0 && (j.entries[0].Event != Opened || j.entries[0].Plan != j.digest) {
		return nil, fmt.Errorf("the journal belongs to another plan, or the plan was changed after its start: restore the plan, or move the journal away if no step was done")
	}
	return j, nil
}

// Digest returns a digest that identifies a plan by its content, regardless of the formatting.
func Digest(p *plan.Plan) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // impossible: a plan contains only plain values
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// add appends an entry. When add returns, the entry is on disk.
func (j *Journal) add(e Entry) error {
	if len(j.entries) == 0 && e.Event != Opened {
		if err := j.add(Entry{Time: e.Time, Event: Opened, Schema: journalSchema, Plan: j.digest}); err != nil {
			return err
		}
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if j.torn {
		if err := j.dropIncompleteLine(); err != nil {
			return err
		}
	}
	if err := j.files.Append(logName, line); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.entries = append(j.entries, e)
	return nil
}

// dropIncompleteLine removes an incomplete last line.
func (j *Journal) dropIncompleteLine() error {
	data, err := j.files.Read(logName)
	if err != nil {
		return err
	}
	if err := j.files.Write(logName, data[:bytes.LastIndexByte(data, '\n')+1]); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.torn = false
	return nil
}

// HasEnded reports whether a step is done.
func (j *Journal) HasEnded(step int) bool { return j.has(step, Ended) }

// HasBegun reports whether a step has begun.
func (j *Journal) HasBegun(step int) bool { return j.has(step, Began) }

func (j *Journal) has(step int, event Event) bool {
	return slices.ContainsFunc(j.entries, func(e Entry) bool { return e.Step == step && e.Event == event })
}

// lastEntry returns the last entry with this event for an action, or nil.
func (j *Journal) lastEntry(step, action int, event Event) *Entry {
	for i := len(j.entries) - 1; i >= 0; i-- {
		if e := &j.entries[i]; e.Step == step && e.Action == action && e.Event == event {
			return e
		}
	}
	return nil
}

// Stopped returns the controllers of OLM that the plan has stopped, or begun to stop, and has not started
// again.
func (j *Journal) Stopped(p *plan.Plan) []k8s.Ref {
	stopped := map[k8s.Key]bool{}
	for _, e := range j.entries {
		a := actionOf(p, e)
		switch {
		case a == nil || a.Do != plan.Scale:
		case a.To < a.From:
			stopped[a.Object.Key()] = true
		case e.Event == Did:
			stopped[a.Object.Key()] = false
		}
	}
	var out []k8s.Ref
	for _, w := range p.OLM {
		if stopped[w.Object.Key()] {
			out = append(out, w.Object)
		}
	}
	return out
}

// actionOf returns the action of the plan that an entry is about, or nil.
func actionOf(p *plan.Plan, e Entry) *plan.Action {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Number == e.Step && e.Action > 0 && e.Action <= len(s.Actions) {
			return &s.Actions[e.Action-1]
		}
	}
	return nil
}

// Evidence returns the evidence of a namespace, captured before its first step. It returns nil if there is
// none.
func (j *Journal) Evidence(namespace string) (*verify.Evidence, error) {
	name := evidenceName(namespace)
	data, err := j.files.Read(name)
	if data == nil || err != nil {
		return nil, err
	}
	return verify.Parse(name, data)
}

// AllEvidence returns the evidence of all namespaces of a plan, by namespace. Namespaces without
// evidence are omitted.
func (j *Journal) AllEvidence(p *plan.Plan) (map[string]*verify.Evidence, error) {
	out := map[string]*verify.Evidence{}
	for _, s := range p.Steps {
		if s.Namespace == "" || out[s.Namespace] != nil {
			continue
		}
		e, err := j.Evidence(s.Namespace)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out[s.Namespace] = e
		}
	}
	return out, nil
}

// SaveEvidence writes the captured state of a namespace to the journal.
func (j *Journal) SaveEvidence(e *verify.Evidence) error {
	data, err := e.Format()
	if err != nil {
		return err
	}
	return j.files.Write(evidenceName(e.Namespace), data)
}

func evidenceName(namespace string) string { return "evidence-" + fileName(namespace) + ".json" }

// HasStarted reports whether any step of the plan has begun.
func (j *Journal) HasStarted() bool {
	return slices.ContainsFunc(j.entries, func(e Entry) bool { return e.Event == Began })
}

// Backup returns the backup of an object, or nil if there is none. If no entry of the journal has the digest of
// the backup file, it returns an error.
func (j *Journal) Backup(ref k8s.Ref) (k8s.Object, error) {
	name := backupName(ref)
	data, err := j.files.Read(name)
	if data == nil || err != nil {
		return nil, err
	}
	digest := catalog.DigestOf(data)
	if !slices.ContainsFunc(j.entries, func(e Entry) bool {
		return e.Do == plan.Save && e.Object != nil && *e.Object == ref && e.Digest == string(digest)
	}) {
		return nil, fmt.Errorf("%s: the backup was altered: the journal has no digest %s of %s", name, digest.Short(), ref)
	}
	var o map[string]any
	if err := utiljson.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

func (j *Journal) saveBackup(o k8s.Object) error {
	return j.files.Write(backupName(k8s.RefTo(o)), formatBackup(o))
}

// formatBackup encodes an object for its backup file. For a Secret that is no record of Helm, it encodes only
// the metadata.
func formatBackup(o k8s.Object) []byte {
	if o.Is("", "Secret") && !snapshot.IsReleaseRecord(o.Key()) {
		o = k8s.Object{"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": o["metadata"]}
	}
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // impossible: the object was decoded from JSON
	}
	return append(data, '\n')
}

func backupName(ref k8s.Ref) string {
	k := ref.Key()
	kind := strings.ToLower(k.Kind)
	if k.Group != "" {
		kind += "." + k.Group
	}
	return "backup/" + fileName(k8s.Fit(kind, 60)) + "/" + fileName(k8s.Fit(k.Namespace, 63)) + "/" + k8s.Fit(fileName(k.Name), 200) + ".json"
}

// fileName converts a name to a file name that is valid on every operating system.
func fileName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.' && b.Len() > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02X", c)
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}
