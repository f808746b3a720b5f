package yamlnode

import (
	"bytes"
	"testing"
)

// values are JSON values; those with true are canonical in the plain form.
func values() map[string]bool {
	return map[string]bool{
		`{"group":"etcd.database.coreos.com","kind":"EtcdCluster","version":"v1beta2"}`: true,
		`{"packageName":"etcd","version":"0.9.4"}`:                                      true,
		`{}`: true, `[]`: true, `""`: true, `null`: true, `true`: true, `false`: true, `0`: true, `-7`: true, `123456789012345678`: true,
		`[1,[2,{"a":{"b":null,"c":"yes"}}],"~","0x10","a: b"]`: true,
		`{"y":"y","~":" "}`:    true,
		`{"b":1,"a":2}`:        false,
		`{"a":1,"a":2}`:        false,
		`{"a": 1}`:             false,
		"[1 ]":                 false,
		`[1,]`:                 false,
		`[,1]`:                 false,
		`{"a":1,}`:             false,
		`{"a"}`:                false,
		`{"a":}`:               false,
		`"\n"`:                 false,
		`"é"`:                  false,
		"\"\x7f\"":             false,
		`1.0`:                  false,
		`1e3`:                  false,
		`-0`:                   false,
		`01`:                   false,
		`1234567890123456789`:  false,
		`18446744073709551616`: false,
		``:                     false,
		`{`:                    false,
		`"a`:                   false,
		`tru`:                  false,
		`1 2`:                  false,
		`[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]`: false,
	}
}

func TestCanonical(t *testing.T) {
	for raw, plain := range values() {
		c := canonical{raw: []byte(raw)}
		if got := c.whole(); got != plain {
			t.Errorf("%s: got plain %v, want %v", raw, got, plain)
		}
		sameCanonical(t, []byte(raw))
	}
}

// FuzzCanonical compares with the full parser.
func FuzzCanonical(f *testing.F) {
	for raw := range values() {
		f.Add([]byte(raw))
	}
	f.Fuzz(sameCanonical)
}

func sameCanonical(t *testing.T, raw []byte) {
	t.Helper()
	want, wantErr := canonicalSlow(raw)
	got, err := Canonical(raw)
	if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
		t.Errorf("%q: got %q, %v; the full parser %q, %v", raw, got, err, want, wantErr)
	}
	if err == nil && len(got) > 0 && len(raw) > 0 && &got[0] == &raw[0] {
		t.Errorf("%q: got the argument itself", raw)
	}
	var flow, wantFlow bytes.Buffer
	err, wantErr = FlowJSON(&flow, raw), flowSlow(&wantFlow, raw)
	if (err == nil) != (wantErr == nil) || err == nil && flow.String() != wantFlow.String() {
		t.Errorf("%q in YAML: got %q, %v; the full parser %q, %v", raw, &flow, err, &wantFlow, wantErr)
	}
}
