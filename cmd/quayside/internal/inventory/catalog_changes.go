package inventory

import (
	"github.com/quayside/quayside/catalog"
)

// CatalogChanges is the list of changes between two catalogs.
type CatalogChanges struct {
	Before  string           `json:"before"`
	After   string           `json:"after"`
	Changes []catalog.Change `json:"changes"`
}
