package diag

import "testing"

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		word, name string
		want       Likeness
	}{
		{"grafana-operator", "grafana-operator", Same},
		{"Grafana Operator", "grafana-operator", Same},
		{"graf", "grafana-operator", Begins},
		{"grafana-op", "grafana-operator", Begins},
		{"rabbitmq-operator", "rabbitmq-cluster-operator", Words},
		{"cluster", "rabbitmq-cluster-operator", Words},
		{"operator-cluster", "rabbitmq-cluster-operator", Unlike},
		{"fana", "grafana-operator", Part},
		{"etcd", "vault/etcd", Words},
		{"kafka", "etcd", Unlike},
		{"", "etcd", Unlike},
		{"--", "etcd", Unlike},
		{"etcd", "", Unlike},
	} {
		if got := Like(tt.word, tt.name); got != tt.want {
			t.Errorf("Like(%q, %q) = %d, want %d", tt.word, tt.name, got, tt.want)
		}
	}
}
