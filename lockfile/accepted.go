package lockfile

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Accepted is what reviewers have let one operator have. It says nothing about
// what is installed: it is the budget that a diff is held against.
type Accepted struct {
	Operator    string   // "namespace/package"
	Permissions []string // "create deployments.apps in ops"; sorted
	APIs        []string // "etcdclusters.etcd.database.coreos.com/v1beta2"; sorted
	Pos         diag.Pos // of the block, in the file it was parsed from
}

type wireAccepted struct {
	Operator    string   `json:"operator" form:"required nonempty" doc:"namespace/package."`
	Permissions []string `json:"permissions" form:"nonempty" doc:"What the operator may do, such as create deployments.apps in ops."`
	APIs        []string `json:"apis" form:"nonempty" doc:"Kinds and versions that the operator brings."`
	Checksum    string   `json:"checksum" form:"required pattern=^sha256:[0-9a-f]{64}$" doc:"Checksum of this block."`
}

func acceptedBlock(a Accepted) []byte {
	var w block
	w.text("operator", a.Operator)
	w.list("permissions", a.Permissions)
	w.list("apis", a.APIs)
	return w.Bytes()
}

func (p *parser) accepted(n *yaml.Node) Accepted {
	q := parser{file: p.file}
	var w wireAccepted
	q.errs.Add(yamlnode.At(p.file, n), yamlnode.Decode(p.file, n, &w))
	q.required(n, "accepted", [2]string{"operator", w.Operator})
	a := Accepted{Operator: w.Operator, Permissions: w.Permissions, APIs: w.APIs, Pos: yamlnode.At(p.file, n)}
	q.sum(n, "what is accepted of "+strconv.Quote(a.Operator), "undo the edit, or run quayside resolve --accept="+a.Operator, w.Checksum, acceptedBlock(a))
	p.errs = append(p.errs, q.errs...)
	return a
}
