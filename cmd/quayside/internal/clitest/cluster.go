package clitest

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/internal/testing/clustertest"
)

// faultsFile lists the requests that a script's API server rejects. Each line has a status code and
// a path prefix: "403 /apis/apps/v1/".
const faultsFile = "faults"

// clusterCommand starts an API server for a script and writes a kubeconfig for it. The server has the objects
// in the files, with the status that controllers would set:
//
//	cluster file...                     start; $CLUSTER is its address
//	cluster delete kind namespace name  remove an object
//	cluster put file...                 add or replace objects, unmodified
//	cluster stop                        stop the server
func clusterCommand(t *testing.T) Command {
	var servers sync.Map // running *clustertest.Server by address; scripts run in parallel
	return func(ts *testscript.TestScript, _ bool, args []string) {
		running, _ := servers.Load(ts.Getenv("CLUSTER"))
		s, _ := running.(*clustertest.Server)
		switch {
		case args[0] == "delete":
			s.Delete(args[1], strings.Trim(args[2], "-"), args[3])
		case args[0] == "stop":
			s.Close()
		case args[0] == "put":
			s.Put(Objects(ts, args[1:])...)
		default:
			s := clustertest.New(t)
			s.Put(Objects(ts, args)...)
			s.Settle()
			faults := ts.MkAbs(faultsFile)
			s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if code := faultCode(faults, r.URL.Path); code != 0 {
					clustertest.Refuse(w, code, http.StatusText(code), strings.ToLower(http.StatusText(code)))
					return
				}
				next.ServeHTTP(w, r)
			})
			servers.Store(s.URL, s)
			ts.Setenv("CLUSTER", s.URL)
			ts.Setenv("KUBECONFIG", ts.MkAbs("kubeconfig"))
			ts.Check(os.WriteFile(ts.MkAbs("kubeconfig"), []byte(s.Kubeconfig()), 0o600))
		}
	}
}

// faultCode returns the status code for a path according to a faultsFile, or 0 if no line matches.
func faultCode(file, path string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		code, prefix, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(code); err == nil && strings.HasPrefix(path, prefix) {
			return n
		}
	}
	return 0
}

// Objects returns the objects in files.
func Objects(ts *testscript.TestScript, names []string) []clustertest.Object {
	var out []clustertest.Object
	for _, name := range names {
		objects, err := clustertest.Objects([]byte(ts.ReadFile(name)))
		ts.Check(err)
		out = append(out, objects...)
	}
	return out
}
