package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/verify"
	"github.com/quayside/quayside/internal/kobj"
)

// Files is the directory of a journal.
type Files interface {
	// Read returns a file; nil where there is none.
	Read(name string) ([]byte, error)
	// Write puts a file in place as a whole, with the directories that it lies in.
	Write(name string, data []byte) error
	// Append adds to the end of a file and returns when that cannot be lost any more.
	Append(name string, data []byte) error
}

// Event says what an entry of a journal is about.
type Event string

// The events of a journal.
const (
	Opened  Event = "opened"  // the journal begins; Plan says of which plan
	Began   Event = "began"   // a step, its checks before it hold
	Intends Event = "intends" // an action is about to be sent
	Did     Event = "did"     // an action is done
	Ended   Event = "ended"   // a step is done, its checks after it hold
	Failed  Event = "failed"  // a step stopped, for Message
)

// Outcome is what an action came to.
type Outcome string

// The outcomes of actions.
const (
	Created Outcome = "created"
	Changed Outcome = "changed"
	Gone    Outcome = "deleted"
	Already Outcome = "already" // nothing was left to do
	Kept    Outcome = "kept"    // it is in the backup
	ByHand  Outcome = "by-hand" // a person said so
)

// Entry is one line of a journal.
type Entry struct {
	Time    time.Time `json:"time"`
	Event   Event     `json:"event"`
	Schema  int       `json:"schema,omitempty"` // of the journal, in its first entry
	Plan    string    `json:"plan,omitempty"`   // digest
	Step    int       `json:"step,omitempty"`
	Action  int       `json:"action,omitempty"` // of the step, from 1
	Do      plan.Verb `json:"do,omitempty"`
	Object  *kobj.Ref `json:"object,omitempty"`
	UID     string    `json:"uid,omitempty"`             // of the object, before an action and after it
	Version string    `json:"resourceVersion,omitempty"` // likewise
	Outcome Outcome   `json:"outcome,omitempty"`
	Message string    `json:"message,omitempty"`
}

// logName is the file of a journal's entries.
const logName = "log.jsonl"

// journalSchema is the number of the only schema of a journal that is read.
const journalSchema = 1

// maxLog bounds what is read of a journal.
const maxLog = 64 << 20

// Journal is what was done of a plan, and what there was before.
type Journal struct {
	files   Files
	digest  string
	entries []Entry
	torn    bool // the last line was cut
}

// OpenJournal reads the journal of a plan, which is empty where nothing was done
// yet. It refuses that of another plan. It writes nothing.
func OpenJournal(files Files, p *plan.Plan) (*Journal, error) {
	j := &Journal{files: files, digest: Digest(p)}
	data, err := files.Read(logName)
	if err != nil {
		return nil, err
	}
	if len(data) > maxLog {
		return nil, fmt.Errorf("%s: more than the %d bytes allowed", logName, maxLog)
	}
	lines := bytes.Split(data, []byte("\n"))
	j.torn = len(lines[len(lines)-1]) > 0 // only what ends in a newline was written as a whole
	for i, line := range lines[:len(lines)-1] {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s:%d: no entry of a journal: %w", logName, i+1, err)
		}
		j.entries = append(j.entries, e)
	}
	if len(j.entries) > 0 && j.entries[0].Schema != journalSchema {
		return nil, fmt.Errorf("%s: the journal has schema %d; this program reads %d: finish the plan with the program that began it", logName, j.entries[0].Schema, journalSchema)
	}
	if len(j.entries) > 0 && (j.entries[0].Event != Opened || j.entries[0].Plan != j.digest) {
		return nil, fmt.Errorf("the journal is that of another plan, or the plan was changed after it was begun: put the plan back as it was, or move the journal away if nothing of it was done")
	}
	return j, nil
}

// Digest identifies a plan by what it says, however it is written.
func Digest(p *plan.Plan) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // of plain values
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// add writes an entry, which is there for good when it returns.
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
		if err := j.mend(); err != nil {
			return err
		}
	}
	if err := j.files.Append(logName, line); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	j.entries = append(j.entries, e)
	return nil
}

// mend drops a line that was cut.
func (j *Journal) mend() error {
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

// Ended reports whether a step is done.
func (j *Journal) Ended(step int) bool { return j.has(step, Ended) }

// Began reports whether something of a step was done.
func (j *Journal) Began(step int) bool { return j.has(step, Began) }

func (j *Journal) has(step int, event Event) bool {
	for _, e := range j.entries {
		if e.Step == step && e.Event == event {
			return true
		}
	}
	return false
}

// done returns the last entry with this event of an action; nil where there is none.
func (j *Journal) last(step, action int, event Event) *Entry {
	for i := len(j.entries) - 1; i >= 0; i-- {
		if e := &j.entries[i]; e.Step == step && e.Action == action && e.Event == event {
			return e
		}
	}
	return nil
}

// Stopped returns which of OLM's controllers the plan's steps have stopped, or have
// begun to stop, and not started again.
func (j *Journal) Stopped(p *plan.Plan) []kobj.Ref {
	stopped := map[kobj.Key]bool{}
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
	var out []kobj.Ref
	for _, w := range p.OLM {
		if stopped[w.Object.Key()] {
			out = append(out, w.Object)
		}
	}
	return out
}

// actionOf returns the action that an entry is about; nil where it is about none.
func actionOf(p *plan.Plan, e Entry) *plan.Action {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Number == e.Step && e.Action > 0 && e.Action <= len(s.Actions) {
			return &s.Actions[e.Action-1]
		}
	}
	return nil
}

// Evidence returns what the cluster had of a namespace before the first of its
// steps; nil where nothing was captured.
func (j *Journal) Evidence(namespace string) (*verify.Evidence, error) {
	name := evidenceName(namespace)
	data, err := j.files.Read(name)
	if data == nil || err != nil {
		return nil, err
	}
	return verify.Parse(name, data)
}

// Before returns what Evidence does for each namespace of a plan of which there is
// any.
func (j *Journal) Before(p *plan.Plan) (map[string]*verify.Evidence, error) {
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

func (j *Journal) keepEvidence(e *verify.Evidence) error {
	data, err := e.Format()
	if err != nil {
		return err
	}
	return j.files.Write(evidenceName(e.Namespace), data)
}

func evidenceName(namespace string) string { return "evidence-" + fileName(namespace) + ".json" }

// Backup returns an object as a step wrote it to a file; nil where none did.
func (j *Journal) Backup(ref kobj.Ref) (kobj.Object, error) {
	name := backupName(ref)
	data, err := j.files.Read(name)
	if data == nil || err != nil {
		return nil, err
	}
	var o map[string]any
	if err := utiljson.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

func (j *Journal) keep(o kobj.Object) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return j.files.Write(backupName(kobj.RefTo(o)), append(data, '\n'))
}

func backupName(ref kobj.Ref) string {
	k := ref.Key()
	kind := strings.ToLower(k.Kind)
	if k.Group != "" {
		kind += "." + k.Group
	}
	return "backup/" + fileName(kobj.Fit(kind, 60)) + "/" + fileName(kobj.Fit(k.Namespace, 63)) + "/" + kobj.Fit(fileName(k.Name), 200) + ".json"
}

// fileName returns a name as files can have it everywhere.
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
