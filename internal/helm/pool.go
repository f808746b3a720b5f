package helm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/helm/internal/wire"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Limits that the parent process enforces, in addition to the limits of the child.
const (
	maxWall   = 30 * time.Second // above the child's own limit of 20 seconds, which the child can report
	maxStderr = 16 << 10         // bytes
	maxHello  = 256              // bytes
)

// programName is the program next to quayside that templates charts.
const programName = "quayside-charts"

// FindProgram returns the path of quayside-charts, which is next to the running program or in
// PATH.
func FindProgram() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", programName, err)
	}
	if resolved, err := filepath.EvalSymlinks(own); err == nil {
		own = resolved
	}
	beside := filepath.Join(filepath.Dir(own), programName+filepath.Ext(own))
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	if found, err := exec.LookPath(programName); err == nil {
		return found, nil
	}
	return "", diag.Hintf(diag.Pos{}, "install "+programName+" from the same release in "+filepath.Dir(own),
		"%s, which templates Helm charts, is neither next to %s nor in PATH", programName, own)
}

// Options are the settings to template a chart with.
type Options struct {
	ReleaseName string
	Namespace   string
	KubeVersion string         // "1.34.0"
	APIVersions []string       // such as "apps/v1" and "apps/v1/Deployment"; nil: those that helm template offers
	Values      map[string]any // the user's values; the chart's defaults apply to the others
}

// Resource is an object that a chart renders to.
type Resource struct {
	Source     string         // path of the template, beginning with the name of the chart
	Object     map[string]any // numbers have the types of yamlnode.Objects
	Hooks      []string       // such as "pre-install"; empty if the object is no hook
	HookWeight int
	HookDelete []string // such as "before-hook-creation"
	Kept       bool     // it was in a List that Helm keeps when the release is uninstalled
}

// Rendered is the result of templating a chart.
type Rendered struct {
	Resources []Resource // in the order of helm template --include-crds
	Lookups   []string   // paths of the templates that call lookup, which returns nothing
	Skipped   []string   // objects that Helm drops, because it does not know their hooks
	Warnings  []string   // messages that Helm logs
}

// Pool templates charts in child processes, at most one for each processor. A child serves one
// chart after another.
type Pool struct {
	program string
	slots   chan *child // nil stands for a child that has not been started
}

// NewPool returns a pool of processes of a program that calls engine.Serve, such as the result of
// [FindProgram]. It starts processes when they are needed.
func NewPool(program string) *Pool {
	p := &Pool{program: program, slots: make(chan *child, runtime.GOMAXPROCS(0))}
	for range cap(p.slots) {
		p.slots <- nil
	}
	return p
}

// Close ends the child processes. It first waits for running calls of Template. Later calls start new processes.
func (p *Pool) Close() {
	for range cap(p.slots) {
		c := <-p.slots
		if c != nil {
			c.kill()
		}
		defer func() { p.slots <- nil }()
	}
}

// Template renders the templates of a chart. files is the result of [ReadArchive] or [ReadDirectory]. The
// error names the chart and, if known, the position in the template.
func (p *Pool) Template(ctx context.Context, files map[string][]byte, opt Options) (*Rendered, error) {
	meta, err := ReadMetadata(files)
	if err != nil {
		return nil, err
	}
	out, err := p.template(ctx, files, opt)
	if fault, ok := errors.AsType[*wire.Error](err); ok {
		return nil, chartError(meta, fault)
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s %s: %w", meta.Name, meta.Version, err)
	}
	return out, nil
}

// chartError returns an error of a chart with its position. Paths of files begin with the name of
// the chart, as Helm's do.
func chartError(meta Metadata, e *wire.Error) error {
	file := e.Path
	if file != "" && file != meta.Name && !strings.HasPrefix(file, meta.Name+"/") {
		file = path.Join(meta.Name, file)
	}
	return diag.Hintf(diag.Pos{File: file, Line: e.Line, Col: e.Col}, e.Hint, "chart %s %s: %s", meta.Name, meta.Version, e.Msg)
}

func (p *Pool) template(ctx context.Context, files map[string][]byte, opt Options) (*Rendered, error) {
	req, blobs, err := newRequest(files, opt)
	if err != nil {
		return nil, err
	}
	var c *child
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case c = <-p.slots:
	}
	defer func() { p.slots <- c }()
	if c == nil {
		if c, err = startChild(p.program); err != nil {
			return nil, err
		}
	}
	answer, objects, err := c.ask(ctx, req, blobs)
	if err != nil || answer.Last {
		c.kill()
		c = nil
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Error != nil:
		return nil, answer.Error
	}
	return decodeAnswer(answer, objects)
}

// newRequest returns the request for a chart, and the content of the request's files in the order of req.Files.
func newRequest(files map[string][]byte, opt Options) (*wire.Request, [][]byte, error) {
	values := opt.Values
	if values == nil {
		values = map[string]any{}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding values: %w", err)
	}
	req := &wire.Request{
		Release: opt.ReleaseName, Namespace: opt.Namespace, KubeVersion: opt.KubeVersion, APIVersions: opt.APIVersions, Values: raw,
	}
	var blobs [][]byte
	total := len(raw)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		req.Files = append(req.Files, wire.File{Path: name, Size: len(files[name])})
		blobs = append(blobs, files[name])
		total += len(name) + len(files[name])
	}
	if total > wire.MaxInput/2 {
		return nil, nil, fmt.Errorf("the files of the chart and its values exceed %d MiB", wire.MaxInput/2>>20)
	}
	return req, blobs, nil
}

// decodeAnswer returns the objects of an answer.
func decodeAnswer(answer *wire.Answer, blob []byte) (*Rendered, error) {
	sizes := make([]int, len(answer.Objects))
	for i, o := range answer.Objects {
		sizes[i] = o.Size
	}
	parts, ok := wire.Cut(blob, sizes)
	if !ok {
		return nil, errors.New("the sizes of the objects differ from those in the answer of the child process")
	}
	out := &Rendered{Lookups: answer.Lookups, Skipped: answer.Skipped, Warnings: answer.Warnings}
	for i, o := range answer.Objects {
		docs, err := yamlnode.Objects(o.Source, parts[i], yamlnode.Limits{})
		if err != nil { // the position in err is in the JSON of the child, not in the chart
			return nil, &wire.Error{Path: o.Source, Msg: "the template renders an invalid object: " + firstMessage(err)}
		}
		for _, doc := range docs {
			out.Resources = append(out.Resources, Resource{Source: o.Source, Object: doc, Hooks: o.Hooks, HookWeight: o.HookWeight, HookDelete: o.HookDelete, Kept: o.Kept})
		}
	}
	return out, nil
}

// firstMessage returns the message of the first fault in an error, without its position.
func firstMessage(err error) string {
	if fault, ok := errors.AsType[*diag.Error](err); ok {
		bare := *fault
		bare.Pos = diag.Pos{}
		return bare.Error()
	}
	return err.Error()
}

// child is a process that runs engine.Serve.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
	doomed atomic.Bool // whether doom was called
}

// startChild starts a program that calls engine.Serve.
func startChild(program string) (*child, error) {
	c := &child{cmd: exec.Command(program), stderr: new(bytes.Buffer)}
	c.cmd.Env = []string{wire.Variable + "=1", "GOGC=400"} // less CPU time for more memory
	c.cmd.Stderr = &limitedWriter{c.stderr, maxStderr}
	c.cmd.WaitDelay = time.Second
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 64<<10)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the program that templates charts: %w", err)
	}
	stop := time.AfterFunc(maxWall, c.doom)
	hello, err := wire.Expect(c.out, wire.Hello, maxHello)
	stop.Stop()
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("%s does not template charts: %w", program, err)
	}
	if got, want := string(hello), wire.BuildVersion(); got != want {
		c.kill()
		return nil, diag.Hintf(diag.Pos{}, "install both programs from the same release", "%s is version %s, but this program is version %s", program, got, want)
	}
	return c, nil
}

// doom kills the process, because of a limit or because its result is not needed anymore.
func (c *child) doom() {
	c.doomed.Store(true)
	_ = c.cmd.Process.Kill()
}

// kill ends the process and waits for its end.
func (c *child) kill() {
	_ = c.in.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// ask sends a request and returns the answer and its objects. After an error, the child cannot be
// used again. An error that the chart has caused is a *wire.Error.
func (c *child) ask(ctx context.Context, req *wire.Request, blobs [][]byte) (*wire.Answer, []byte, error) {
	defer context.AfterFunc(ctx, c.doom)()
	defer time.AfterFunc(maxWall, c.doom).Stop()
	go func() { // the child may answer before it has read everything
		if wire.WriteJSON(c.in, wire.Head, req) == nil {
			_ = wire.Write(c.in, wire.Files, blobs...)
		}
	}()
	current := ""
	for {
		kind, data, err := wire.Read(c.out, wire.MaxOutput)
		switch {
		case err != nil:
			return nil, nil, c.failure(ctx, current, err)
		case kind == wire.Template:
			current = string(data)
		case kind == wire.Reply:
			answer := new(wire.Answer)
			if err := json.Unmarshal(data, answer); err != nil {
				return nil, nil, c.failure(ctx, current, err)
			}
			objects, err := wire.Expect(c.out, wire.Objects, wire.MaxOutput)
			if err != nil {
				return nil, nil, c.failure(ctx, current, err)
			}
			return answer, objects, nil
		default:
			return nil, nil, c.failure(ctx, current, fmt.Errorf("unexpected frame %q", kind))
		}
	}
}

// failure returns the error for a process that ended without an answer. current is the last template that
// the process began to execute.
func (c *child) failure(ctx context.Context, current string, err error) error {
	c.kill()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	stderr := c.stderr.String()
	msg := "templating failed: " + err.Error()
	switch {
	case errors.Is(err, wire.ErrTooLong):
		msg = fmt.Sprintf("the templates render more than %d MiB", wire.MaxOutput>>20)
	case c.doomed.Load():
		msg = fmt.Sprintf("templating exceeds %v", maxWall)
	case strings.Contains(stderr, "out of memory"), strings.Contains(stderr, "cannot allocate memory"):
		msg = "templating exceeds the memory limit"
	case strings.Contains(stderr, "stack exceeds"):
		msg = "templates call each other too deeply"
	case strings.TrimSpace(stderr) != "":
		first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
		msg = "templating failed: " + first
	}
	return &wire.Error{Path: current, Msg: msg}
}

// limitedWriter writes at most left bytes to a buffer, and drops the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.to.Write(p[:n])
	l.left -= n
	return len(p), nil
}
