package diag

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, tt := range []struct {
		name, word string
		among      []string
		want       []string
	}{
		{"ok/swap", "stabel", []string{"stable", "alpha"}, []string{"stable"}},
		{"ok/case", "ETCD", []string{"etcd"}, []string{"etcd"}},
		{"ok/case alone", "OCI", []string{"oci-archive", "oci", "oki"}, []string{"oci"}},
		{"ok/best first", "alpha1", []string{"alpha22", "alpha2", "alpha"}, []string{"alpha", "alpha2", "alpha22"}},
		{"ok/at most three", "aaaa", []string{"aaab", "aaac", "aaad", "aaae"}, []string{"aaab", "aaac", "aaad"}},
		{"ok/no repeats", "etcx", []string{"etcd", "etcd"}, []string{"etcd"}},
		{"ok/begins", "grafana", []string{"etcd", "grafana-tempo-operator", "grafana-operator"}, []string{"grafana-operator", "grafana-tempo-operator"}},
		{"ok/words", "rabbitmq-operator", []string{"cluster-operator", "rabbitmq-cluster-operator"}, []string{"rabbitmq-cluster-operator"}},
		{"ok/a typo before words", "vaults", []string{"my-vaults", "vault"}, []string{"vault", "my-vaults"}},
		{"none/too short", "on", []string{"on-call", "once-more"}, nil},
		{"none/a part", "cure", []string{"procurement"}, nil},
		{"none/far", "kafka", []string{"etcd", "prometheus"}, nil},
		{"none/itself", "etcd", []string{"etcd"}, nil},
		{"none/empty", "", []string{"a"}, nil},
		{"none/too long", strings.Repeat("a", 200), []string{strings.Repeat("a", 199)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Nearest(tt.word, tt.among); !slices.Equal(got, tt.want) {
				t.Errorf("Nearest(%q) = %q, want %q", tt.word, got, tt.want)
			}
		})
	}
}

func TestDidYouMean(t *testing.T) {
	if got, want := DidYouMean("stabel", []string{"stable"}), ` (did you mean "stable"?)`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := DidYouMean("kafka", []string{"etcd"}); got != "" {
		t.Errorf("got %q, want no suggestion", got)
	}
}
