package diag

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		word  string
		among []string
		want  []string
	}{
		{"chanel", []string{"catalog", "channel", "channels"}, []string{"channel", "channels"}},
		{"Channel", []string{"channel", "charm"}, []string{"channel"}},
		{"stabel", []string{"candidate", "stable"}, []string{"stable"}},
		{"etcd-operator", []string{"etcd", "prometheus"}, nil},
		{"prom", []string{"etcd", "prometheus"}, []string{"prometheus"}},
		{"b1", []string{"a1", "c1", "d1", "e1"}, []string{"a1", "c1", "d1"}},
		{"", []string{"abc"}, nil},
		{"same", []string{"same", "some"}, []string{"some"}},
	} {
		if got := Nearest(c.word, c.among); !slices.Equal(got, c.want) {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.word, c.among, got, c.want)
		}
	}
}
