package declare

import (
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/model"
)

// Declaration is an operator to declare, independent of the dialect.
type Declaration struct {
	Name      string // of the object
	Namespace string
	Package   string
	Channel   string   // "": the default of the package
	Version   string   // a range; "": any
	Start     string   // the bundle to start from; "": the head of the channel
	Catalog   model.ID // zero: the only one that has the package
	Watch     []string // nil: the operator's preference; "*" alone: all
	Group     bool     // the namespace lacks an OperatorGroup
}

// Writer writes declarations in one dialect.
type Writer struct {
	Dialect      Dialect
	Fits         func(catalog model.ID) bool // whether a declaration can name a catalog
	NamesCatalog bool                        // a declaration always names its catalog
	HasStart     bool                        // a declaration names a bundle to start from, and no range of versions
	HasGroup     bool                        // an OperatorGroup has the watched namespaces

	// Objects returns the declaration, after the objects that it needs.
	Objects func(Declaration) []k8s.Object
}

// AnyCatalog returns the writer of declarations that can name every catalog.
func AnyCatalog() Writer {
	return Writer{Dialect: Quayside, Fits: func(model.ID) bool { return true }, Objects: writeOwn}
}

// Writers returns the writers of all dialects that have one. The first one is the default.
func Writers() []Writer {
	return []Writer{
		AnyCatalog(),
		{Dialect: V0, Fits: func(id model.ID) bool { return id.Namespace != "" }, NamesCatalog: true, HasStart: true, HasGroup: true, Objects: writeV0},
		{Dialect: V1, Fits: func(id model.ID) bool { return id.Namespace == "" }, Objects: writeV1},
	}
}

func putText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}
