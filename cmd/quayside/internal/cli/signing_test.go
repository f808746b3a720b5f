package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quayside/quayside/internal/oci"
	"github.com/quayside/quayside/internal/oci/sign"
	"github.com/quayside/quayside/internal/store"
	"github.com/quayside/quayside/internal/testing/trusttest"
)

// keyPair returns the script command that writes NAME.key with the password "secret", and NAME.pub.
func keyPair(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		key := trusttest.NewKey(t)
		put(t, ts.Getenv("WORK"), args[0]+".key", string(key.Private(t, "secret")))
		put(t, ts.Getenv("WORK"), args[0]+".pub", string(key.Public))
	}
}

// cosign returns the script command that signs an image without provenance. Its arguments are a key
// of keyPair, and a file with the reference by digest.
func cosign(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		ref, err := os.ReadFile(args[1])
		ts.Check(err)
		signer, err := sign.NewKey([]byte(read(t, ts.Getenv("WORK"), args[0])), "secret")
		ts.Check(err)
		kept, err := store.Open(t.TempDir())
		ts.Check(err)
		name := strings.TrimPrefix(strings.TrimSpace(string(ref)), "oci://")
		_, err = signer.Sign(t.Context(), &oci.Client{Store: kept}, name)
		ts.Check(err)
	}
}

// sigstore returns the script command that starts sigstore services, writes their trusted_root.json,
// and sets SIGSTORE to their URL. For each argument, an e-mail address, it writes a file with a
// token.
func sigstore(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		s := trusttest.NewServices(t)
		put(t, ts.Getenv("WORK"), "trusted_root.json", string(s.Root))
		for _, who := range args {
			put(t, ts.Getenv("WORK"), who, trusttest.Token(who, "https://accounts.example.com")+"\n")
		}
		ts.Setenv("SIGSTORE", s.URL)
		ts.Setenv("TIMESTAMP", s.Timestamp)
	}
}
