package catalog

import (
	"testing"
)

func TestParseDigest(t *testing.T) {
	good := "sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	if d, err := ParseDigest(good); err != nil || d.Hex() != good[7:] {
		t.Errorf("ParseDigest(%q) = %q, %v", good, d, err)
	}
	for _, bad := range []string{"", "sha256:", good[:70], good + "0", "sha512:" + good[7:], "sha256:" + "G" + good[8:], "sha256:" + "A" + good[8:]} {
		if d, err := ParseDigest(bad); err == nil || d != "" {
			t.Errorf("ParseDigest(%q) = %q, %v: want an error", bad, d, err)
		}
	}
}

func TestModes(t *testing.T) {
	for _, tt := range []struct {
		watch    []string
		mode     InstallMode
		modes    []InstallMode
		supports bool
	}{
		{nil, AllNamespaces, []InstallMode{AllNamespaces}, true},
		{[]string{""}, AllNamespaces, []InstallMode{OwnNamespace}, false},
		{[]string{"own"}, OwnNamespace, []InstallMode{SingleNamespace}, false},
		{[]string{"other"}, SingleNamespace, []InstallMode{SingleNamespace}, true},
		{[]string{"other", "third"}, MultiNamespace, []InstallMode{MultiNamespace}, true},
		{[]string{"own", "other"}, MultiNamespace, []InstallMode{MultiNamespace}, false},
		{[]string{"own", "other"}, MultiNamespace, []InstallMode{MultiNamespace, OwnNamespace}, true},
		{[]string{"own"}, OwnNamespace, nil, true},
		{[]string{"own"}, OwnNamespace, []InstallMode{}, false},
	} {
		if got := ModeFor("own", tt.watch); got != tt.mode {
			t.Errorf("ModeFor(%q) = %s, want %s", tt.watch, got, tt.mode)
		}
		if got := SupportsNamespaces(tt.modes, "own", tt.watch); got != tt.supports {
			t.Errorf("Supports(%v, %q) = %t", tt.modes, tt.watch, got)
		}
	}
}
