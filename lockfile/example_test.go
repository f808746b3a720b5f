package lockfile_test

import (
	"fmt"
	"os"

	"github.com/quayside/quayside/lockfile"
)

func ExampleParse() {
	const file = "../examples/quickstart/quayside.lock"
	data, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := lockfile.Parse(file, data)
	if err != nil {
		fmt.Println(err) // a line for each fault, with its position
		return
	}
	for _, pin := range lock.Pins {
		fmt.Println(pin.Key(), pin.VersionText(), pin.InstallMode)
	}
	// Output:
	// at-operator/at-operator 0.1.1 AllNamespaces
	// memcached-operator-system/memcached-operator 0.0.1 AllNamespaces
	// my-etcd/etcd 0.9.4 OwnNamespace
	// vault/etcd 0.9.4 OwnNamespace
	// vault/vault 0.1.9 OwnNamespace
}

func ExampleDiff() {
	pin := lockfile.Pin{
		Namespace: "my-etcd", Package: "etcd", Version: "0.9.2", Bundle: "etcdoperator.v0.9.2",
		InstallMode: "OwnNamespace", WatchNamespaces: []string{"my-etcd"},
	}
	before := lockfile.New([]lockfile.Pin{pin})
	pin.Version, pin.Bundle, pin.Replaces = "0.9.4", "etcdoperator.v0.9.4", pin.Bundle
	after := before.With([]lockfile.Pin{pin})

	for _, c := range lockfile.Diff(before, after) {
		fmt.Println(c.Kind, c.Namespace+"/"+c.Package, c.From, c.To, c.Fields)
	}
	// Output:
	// moved my-etcd/etcd 0.9.2 0.9.4 [bundle replaces version]
}

func ExampleFile_RequiredBy() {
	lock := lockfile.New([]lockfile.Pin{
		{Namespace: "certs", Package: "cert-manager", Version: "1.19.0", Bundle: "cert-manager.v1.19.0", InstallMode: "AllNamespaces"},
		{
			Namespace: "shop", Package: "queue", Version: "2.1.0", Bundle: "queue.v2.1.0", InstallMode: "AllNamespaces",
			Requires: []lockfile.Requirement{{Requirement: "olm.gvk.required cert-manager.io/v1 Certificate", Pin: "certs/cert-manager"}},
		},
	})
	if pin, ok := lock.Pin("certs", "cert-manager"); ok {
		for _, r := range lock.RequiredBy(pin) {
			fmt.Println(r.Pin, "requires", r.Requirement)
		}
	}
	// Output:
	// shop/queue requires olm.gvk.required cert-manager.io/v1 Certificate
}
