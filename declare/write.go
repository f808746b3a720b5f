package declare

import (
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// Declaration is an operator to declare in any dialect.
type Declaration struct {
	Name        string // name of the object
	Namespace   string
	Package     string
	Bundle      string     // bundle instead of a package, such as "dir:bundle"; see Subscription
	Channel     string     // empty: the default channel of the package
	Version     string     // version range; empty: any
	Start       string     // startingCSV; empty: the head of the channel
	Catalog     catalog.ID // zero: the only catalog with the package
	Watch       []string   // watched namespaces; "*" alone: all; nil: the default of the operator
	Approval    Approval
	Config      []byte   // spec.config as canonical JSON; nil: none
	Values      []byte   // spec.values as canonical JSON; nil: none
	ValuesFiles []string // files with values, relative to the workspace
	Only        []string // environments that install the operator; nil: all
	Group       bool     // whether to add an OperatorGroup, because the namespace has none
}

// Writer creates the objects of declarations in one dialect.
type Writer struct {
	Dialect      Dialect
	CanName      func(id catalog.ID) bool // reports whether the dialect can name a catalog
	NamesCatalog bool                     // whether the catalog must be named
	HasStart     bool                     // whether a starting bundle is declared instead of a version range
	HasApproval  bool                     // whether the dialect has an approval
	HasGroup     bool                     // whether an OperatorGroup declares the watched namespaces

	// Objects returns the objects of a declaration. Objects that it needs come first.
	Objects func(Declaration) []k8s.Object
}

// AnyCatalog returns the writer for the dialect that can name every catalog.
func AnyCatalog() Writer {
	return Writer{Dialect: Quayside, CanName: func(catalog.ID) bool { return true }, HasApproval: true, Objects: writeOwn}
}

// Writers returns the writers for all dialects that can be written. The first is the default.
func Writers() []Writer {
	return []Writer{
		AnyCatalog(),
		{Dialect: V0, CanName: func(id catalog.ID) bool { return id.Namespace != "" }, NamesCatalog: true, HasStart: true, HasApproval: true, HasGroup: true, Objects: writeV0},
		{Dialect: V1, CanName: func(id catalog.ID) bool { return id.Namespace == "" }, Objects: writeV1},
	}
}

// putConfig sets m[key] to a mapping, such as a config, unless it is empty.
func putConfig(m map[string]any, key string, config []byte) {
	var v map[string]any
	if err := utiljson.Unmarshal(config, &v); err == nil && len(v) > 0 {
		m[key] = v
	}
}

// putText sets m[key] to value, unless it is empty.
func putText(m map[string]any, key, value string) {
	if value != "" {
		m[key] = value
	}
}
