package declare

import (
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// Declaration is an operator to declare in any dialect.
type Declaration struct {
	Name      string // of the declaration's object
	Namespace string
	Package   string
	Channel   string     // "": the package's default channel
	Version   string     // version range; "": any
	Start     string     // startingCSV; "": the head of the channel
	Catalog   catalog.ID // zero: the only catalog with the package
	Watch     []string   // "*" alone: all namespaces; nil: the default of the operator
	Approval  Approval
	Config    []byte // spec.config as canonical JSON; nil: none
	Group     bool   // whether to add an OperatorGroup, because the namespace has none
}

// Writer formats declarations of one dialect.
type Writer struct {
	Dialect      Dialect
	CanName      func(id catalog.ID) bool // whether a declaration of this dialect can name the catalog
	NamesCatalog bool                     // whether a declaration must name its catalog
	HasStart     bool                     // whether a declaration names a starting bundle instead of a version range
	HasApproval  bool                     // whether a declaration has an approval
	HasGroup     bool                     // whether the watched namespaces are part of an OperatorGroup

	// Objects returns the declaration, preceded by the objects that it needs.
	Objects func(Declaration) []k8s.Object
}

// AnyCatalog returns the writer of the dialect that can name every catalog.
func AnyCatalog() Writer {
	return Writer{Dialect: Quayside, CanName: func(catalog.ID) bool { return true }, HasApproval: true, Objects: writeOwn}
}

// Writers returns the writers of all dialects with write support. The first one is the default.
func Writers() []Writer {
	return []Writer{
		AnyCatalog(),
		{Dialect: V0, CanName: func(id catalog.ID) bool { return id.Namespace != "" }, NamesCatalog: true, HasStart: true, HasApproval: true, HasGroup: true, Objects: writeV0},
		{Dialect: V1, CanName: func(id catalog.ID) bool { return id.Namespace == "" }, Objects: writeV1},
	}
}

// putConfig sets a key to a config unless that is empty.
func putConfig(m map[string]any, key string, config []byte) {
	var v map[string]any
	if err := utiljson.Unmarshal(config, &v); err == nil && len(v) > 0 {
		m[key] = v
	}
}

// putText sets a key unless value is empty.
func putText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}
