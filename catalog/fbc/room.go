package fbc

import "github.com/quayside/quayside/catalog"

// room is a place in a document, as far as it decides what the decoder looks
// at there.
type room int

const (
	roomEverything   room = iota // all below is of use
	roomDocument                 // the root
	roomSchema                   // its schema
	roomEntries                  // a channel's entries, or a package's deprecations
	roomEntry                    // one of them
	roomProperties               // a bundle's
	roomProperty                 // one of them
	roomPropertyType             // its type
	roomMetadata                 // the value of an olm.csv.metadata
	roomLongText                 // its description
	roomAnnotations              // its annotations
	roomProvider                 // its provider
	roomDefinitions              // its crdDescriptions
	roomOwned                    // those that it owns
	roomDefinition               // one of them
)

// longEnough is how much is read of a roomLongText, in bytes.
const longEnough = 4 << 10

// item returns what the items of a sequence are.
func (r room) item() room {
	switch r {
	case roomEntries:
		return roomEntry
	case roomProperties:
		return roomProperty
	case roomOwned:
		return roomDefinition
	default:
		return roomEverything
	}
}

// field returns what a mapping's field is, and whether the decoder looks at
// it. isMetadata says of a property that it is an olm.csv.metadata.
func (r room) field(name []byte, isMetadata bool) (room, bool) {
	switch r {
	case roomDocument:
		return documentField(name)
	case roomProperty:
		switch string(name) {
		case "type":
			return roomPropertyType, true
		case "value":
			if isMetadata {
				return roomMetadata, true
			}
			return roomEverything, true
		}
		return roomEverything, false
	case roomMetadata:
		return metadataField(name)
	case roomAnnotations:
		return roomEverything, string(name) == "description" || catalog.KeepsAnnotation(string(name))
	case roomProvider, roomDefinition:
		return roomEverything, string(name) == "name"
	case roomDefinitions:
		return roomOwned, string(name) == "owned"
	default:
		return roomEverything, true
	}
}

func documentField(name []byte) (room, bool) {
	switch string(name) {
	case "schema":
		return roomSchema, true
	case "entries":
		return roomEntries, true
	case "properties":
		return roomProperties, true
	case "package", "name", "defaultChannel", "description", "image", "relatedImages":
		return roomEverything, true
	}
	return roomEverything, false
}

func metadataField(name []byte) (room, bool) {
	switch string(name) {
	case "annotations":
		return roomAnnotations, true
	case "description":
		return roomLongText, true
	case "provider":
		return roomProvider, true
	case "crdDescriptions", "customresourcedefinitions":
		return roomDefinitions, true
	case "displayName", "minKubeVersion", "maturity", "keywords", "installModes":
		return roomEverything, true
	}
	return roomEverything, false
}
