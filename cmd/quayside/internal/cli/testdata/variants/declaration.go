package declare

import "go.yaml.in/yaml/v3"

// Install is a kind of declaration that has only the name of an operator.
const Install Dialect = "install.example.com"

type specInstall struct {
	Operator string `json:"operator"`
}

func fieldsInstall() map[Field]string {
	return map[Field]string{FieldNamespace: "metadata.namespace", FieldPackage: "spec.operator"}
}

func (r *reader) install(n *yaml.Node) {
	var o typedObject[specInstall, *yaml.Node]
	c := r.decode(n, &o)
	c.Name("metadata.name", o.Metadata.Name)
	c.Namespace("metadata.namespace", o.Metadata.Namespace)
	c.Name("spec.operator", o.Spec.Operator)
	s := Subscription{
		Dialect: Install, Name: o.Metadata.Name, Namespace: o.Metadata.Namespace, Package: o.Spec.Operator,
		Approval: Automatic, Policy: CatalogProvided, Pos: c.Whole, Fields: c.Fields,
	}
	s.Digest = s.digest()
	declare(r, &r.set.Subscriptions, s)
}
