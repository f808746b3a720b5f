package lockfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/lockfile"
)

// TestAdopted fixes the format of OLM's settings for an adopted operator.
func TestAdopted(t *testing.T) {
	f := sampleLock()
	f.Pins[1].Adopted = &lockfile.Adopted{
		Condition:    "etcdoperator.v0.9.4",
		Certificates: []string{"Zm9v", "YmFy", "Zm9v"},
		Annotations:  []lockfile.Annotation{{Deployment: "b", Name: "olmcahash", Value: "2"}, {Deployment: "a", Name: "note", Absent: true}},
	}
	text := string(lockfile.Format(f))
	const want = `  adopted:
    operatorCondition: etcdoperator.v0.9.4
    caCertificates: [YmFy, Zm9v]
    annotations:
    - {deployment: a, name: note, value: "", absent: true}
    - {deployment: b, name: olmcahash, value: "2"}
  checksum:`
	if !strings.Contains(text, want) {
		t.Fatalf("got %s", text)
	}
	got, err := lockfile.Parse("quayside.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if again := string(lockfile.Format(got)); again != text {
		t.Errorf("not canonical: %s", cmp.Diff(text, again))
	}
	changes := lockfile.Diff(sampleLock(), got)
	if len(changes) != 1 || changes[0].Kind != lockfile.Changed || !cmp.Equal(changes[0].Fields, []string{"adopted"}) {
		t.Errorf("got %+v", changes)
	}
	f.Pins[1].Adopted = &lockfile.Adopted{Certificates: []string{"Zm9v"}}
	if _, err := lockfile.Parse("quayside.lock", lockfile.Format(f)); err == nil || !strings.Contains(err.Error(), "adopted requires operatorCondition") {
		t.Errorf("without a condition name: %v", err)
	}
}
