package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/adopt/run/runtest"
	"github.com/quayside/quayside/internal/cluster/clustertest"
	"github.com/quayside/quayside/internal/kobj"
)

// faultsFile says, line by line, what the API server of a script refuses:
// "403 /apis/apps/v1/" refuses every address that begins so.
const faultsFile = "faults"

// cluster starts an API server for a script that has the objects of the files
// named as if their controllers had done their work, and writes a kubeconfig for
// it:
//
//	cluster file...                     start; $CLUSTER is its address
//	cluster delete kind namespace name  remove an object
//	cluster put file...                 add or replace objects, as they stand there
//	cluster stop
func cluster(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	var servers sync.Map // *clustertest.Server by address; scripts run in parallel
	return func(ts *testscript.TestScript, _ bool, args []string) {
		running, _ := servers.Load(ts.Getenv("CLUSTER"))
		s, _ := running.(*clustertest.Server)
		switch {
		case args[0] == "delete":
			s.Delete(args[1], strings.Trim(args[2], "-"), args[3])
		case args[0] == "stop":
			s.Close()
		case args[0] == "put":
			s.Put(documents(ts, args[1:])...)
		default:
			s := clustertest.New(t)
			s.Put(documents(ts, args)...)
			s.Settle()
			faults := ts.MkAbs(faultsFile)
			s.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if code := faultAt(faults, r.URL.Path); code != 0 {
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

// installer starts an API server for a script that has the objects of lists, and in which
// OLM and the garbage collector do what there is to do.
func installer(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var objects []kobj.Object
		for _, list := range documents(ts, args) {
			text, err := json.Marshal(list)
			ts.Check(err)
			var whole map[string]any
			ts.Check(utiljson.Unmarshal(text, &whole))
			for _, o := range kobj.Items(whole, "items") {
				objects = append(objects, o)
			}
		}
		c := runtest.New(objects...)
		c.OLM = true
		c.Settle()
		ts.Setenv("KUBECONFIG", ts.MkAbs("kubeconfig"))
		ts.Check(os.WriteFile(ts.MkAbs("kubeconfig"), []byte(runtest.Serve(t, c)), 0o600))
	}
}

func faultAt(file, path string) int {
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

// documents returns the objects of files.
func documents(ts *testscript.TestScript, names []string) []clustertest.Object {
	var out []clustertest.Object
	for _, name := range names {
		objects, err := clustertest.Objects([]byte(ts.ReadFile(name)))
		ts.Check(err)
		out = append(out, objects...)
	}
	return out
}
