package edit

import (
	"bytes"
	"slices"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/subscription"
)

// draft is an operator that is to be declared.
type draft struct {
	dialect   subscription.Dialect
	name      string // of the declaration
	namespace string
	pkg       string
	channel   string     // "": the package's default
	version   string     // a range; "": any
	start     string     // v0: the bundle to begin with; "" for the channel's head
	catalog   catalog.ID // zero: the only one that has the package
	watch     []string   // nil: what the operator prefers; "*" alone: all
	group     bool       // v0: the namespace lacks an OperatorGroup
}

// text returns the declaration as YAML documents, the objects around it first.
func (d draft) text() []byte {
	var docs [][]byte
	for _, o := range d.objects() {
		docs = append(docs, yamlnode.Encode(o))
	}
	return bytes.Join(docs, []byte("---\n"))
}

func (d draft) objects() []kobj.Object {
	switch d.dialect {
	case subscription.V0:
		return d.v0()
	case subscription.V1:
		return []kobj.Object{d.v1()}
	default:
		return []kobj.Object{d.own()}
	}
}

func (d draft) own() kobj.Object {
	spec := map[string]any{"package": d.pkg}
	put(spec, "channel", d.channel)
	put(spec, "version", d.version)
	if d.catalog != (catalog.ID{}) {
		spec["catalog"] = d.catalog.String()
	}
	if d.watch != nil {
		spec["watchNamespaces"] = list(d.watch)
	}
	return object("quayside.dev/v1alpha1", "Subscription", d.namespace, d.name, spec)
}

func (d draft) v0() []kobj.Object {
	spec := map[string]any{"name": d.pkg, "source": d.catalog.Name, "sourceNamespace": d.catalog.Namespace}
	put(spec, "channel", d.channel)
	put(spec, "startingCSV", d.start)
	sub := object("operators.coreos.com/v1alpha1", "Subscription", d.namespace, d.name, spec)
	if !d.group {
		return []kobj.Object{sub}
	}
	targets := map[string]any{}
	if !slices.Equal(d.watch, []string{"*"}) {
		targets["targetNamespaces"] = list(d.watch)
	}
	return []kobj.Object{object("operators.coreos.com/v1", "OperatorGroup", d.namespace, d.namespace, targets), sub}
}

func (d draft) v1() kobj.Object {
	filter := map[string]any{"packageName": d.pkg}
	put(filter, "version", d.version)
	if d.channel != "" {
		filter["channels"] = []any{d.channel}
	}
	if d.catalog != (catalog.ID{}) {
		filter["selector"] = map[string]any{"matchLabels": map[string]any{"olm.operatorframework.io/metadata.name": d.catalog.Name}}
	}
	spec := map[string]any{
		"namespace": d.namespace, "serviceAccount": map[string]any{"name": d.name + "-installer"},
		"source": map[string]any{"sourceType": "Catalog", "catalog": filter},
	}
	if len(d.watch) == 1 && d.watch[0] != "*" {
		spec["config"] = map[string]any{"configType": "Inline", "inline": map[string]any{"watchNamespace": d.watch[0]}}
	}
	return object("olm.operatorframework.io/v1", "ClusterExtension", "", d.name, spec)
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) kobj.Object {
	meta := map[string]any{"name": name}
	put(meta, "namespace", namespace)
	return kobj.Object{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "spec": spec}
}

func put(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}

func list(names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}
