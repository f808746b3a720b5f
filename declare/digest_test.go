package declare_test

import (
	"testing"

	"github.com/quayside/quayside/declare"
)

// TestDigestsAreStable checks the digests of declarations. If they changed, every committed lock would
// be out of date.
func TestDigestsAreStable(t *testing.T) {
	for _, c := range [][2]string{
		{`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "etcd", "namespace": "ops"},
		  "spec": {"name": "etcd", "source": "hub", "sourceNamespace": "olm", "channel": "alpha", "startingCSV": "etcd.v1", "config": {"env": [{"name": "A", "value": "<1>"}]}}}`, "sha256:934d1efc8a4c6bd60dd3188b566b67a925c8a5245b1c78ec9cf115c2a19e76fa"},
		{`{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "etcd"}, "spec": {"namespace": "ops", "serviceAccount": {"name": "etcd"},
		  "source": {"sourceType": "Catalog", "catalog": {"packageName": "etcd", "version": ">=1", "channels": ["b", "a"], "upgradeConstraintPolicy": "SelfCertified",
		  "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}},
		  "config": {"configType": "Inline", "inline": {"watchNamespace": "apps"}}}}`, "sha256:815092b023e059ee1fe687c47a0f363122c68307c49106c4b8392c80ec661847"},
		{`{"apiVersion": "quayside.dev/v1alpha1", "kind": "Subscription", "metadata": {"name": "etcd", "namespace": "ops"},
		  "spec": {"package": "etcd", "catalog": "hub", "watchNamespaces": ["*"], "approval": "Manual", "hold": "later"}}`, "sha256:fca9a5913e5fe4ee4b3a2cf90afb5b7e94fcfac66498c19a5c6891af6ce0bcc3"},
		{`{"apiVersion": "policy.open-cluster-management.io/v1beta1", "kind": "OperatorPolicy", "metadata": {"name": "etcd"},
		  "spec": {"severity": "high", "complianceType": "musthave", "upgradeApproval": "None", "versions": ["etcd.v1"], "subscription": {"name": "etcd", "namespace": "ops"}}}`, "sha256:2348562f4c1d705b00a73a8819be419f084ff8196e485826da3087e15dc21107"},
	} {
		text, want := c[0], c[1]
		set, err := declare.Parse("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(set.Subscriptions[0].Digest); got != want {
			t.Errorf("%s\ngot %s, want %s", text, got, want)
		}
	}
}
