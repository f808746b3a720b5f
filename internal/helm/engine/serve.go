// Package engine templates Helm charts in a child process.
//
// A chart is an untrusted program. Serve reads charts from its input and writes the objects to its output.
// Before it reads the first chart, it gives up the permission to open files and connections, and it limits
// its own memory and CPU time (see limits_unix.go). Templates cannot be interrupted, so a template that
// exceeds a limit ends the process. The parent process then reports the template and starts another child
// process.
//
// Helm's packages render the chart. The same chart and settings give the same objects as helm template
// --include-crds of Helm 4.3.1. Each chart is rendered twice. If the objects differ, this is an error.
//
// This package imports Helm and client-go. It is imported only by programs that template charts.
//
// Start from Serve.
package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// Asked reports whether the environment asks this process to serve as a child. If so, the program must call
// Serve before anything else, and exit.
func Asked() bool { return os.Getenv(wire.Variable) != "" } //nolint:forbidigo // the program has no other input than this variable and its standard input

// Serve answers the requests in the input until it ends. It returns the exit code of the process.
func Serve(in io.Reader, out io.Writer) int {
	s := &server{in: bufio.NewReaderSize(in, 64<<10), out: out}
	if err := limitProcess(); err != nil {
		fmt.Fprintln(os.Stderr, "limiting the process:", err)
		return 1
	}
	if err := wire.Write(out, wire.Hello, []byte(wire.BuildVersion())); err != nil {
		return 1
	}
	for {
		switch more, err := s.serveOne(); {
		case errors.Is(err, io.EOF):
			return 0
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			return 1
		case !more:
			return 0
		}
	}
}

type server struct {
	in  *bufio.Reader
	out io.Writer
}

// serveOne answers one request. It returns false if the process should not answer another one.
func (s *server) serveOne() (bool, error) {
	head, err := wire.Expect(s.in, wire.Head, wire.MaxInput)
	if err != nil {
		return false, err
	}
	blob, err := wire.Expect(s.in, wire.Files, wire.MaxInput)
	if err != nil {
		return false, err
	}
	var req wire.Request
	if err := json.Unmarshal(head, &req); err != nil {
		return false, err
	}
	sizes := make([]int, len(req.Files))
	for i, f := range req.Files {
		sizes[i] = f.Size
	}
	files, ok := wire.Cut(blob, sizes)
	if !ok {
		return false, errors.New("files have other sizes than the request")
	}
	watch := startWatch(s.out)
	answer, objects := templateChart(&req, files, watch)
	watch.stop()
	answer.Last = processIsUsedUp()
	if err := wire.WriteJSON(s.out, wire.Reply, answer); err != nil {
		return false, err
	}
	return !answer.Last, wire.Write(s.out, wire.Objects, objects...)
}

// templateChart returns the answer to a request, and the JSON of its objects.
func templateChart(req *wire.Request, files [][]byte, watch *watch) (*wire.Answer, [][]byte) {
	answer := new(wire.Answer)
	logged := captureLog()
	objects, err := newJob(req, files, watch).run(answer)
	answer.Warnings = logged()
	if err == nil {
		return answer, objects
	}
	fault, ok := errors.AsType[*wire.Error](err)
	if !ok {
		fault = &wire.Error{Msg: strings.TrimSpace(err.Error())}
	}
	return &wire.Answer{Error: fault, Lookups: answer.Lookups, Warnings: answer.Warnings}, nil
}
