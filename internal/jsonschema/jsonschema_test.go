package jsonschema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/jsonschema"
)

func TestOf(t *testing.T) {
	type part struct {
		Name string `json:"name" form:"required nonempty" doc:"A name."`
	}
	type short struct {
		Path string `json:"path" yamlnode:"text"`
	}
	type whole struct {
		Mode  string         `json:"mode" default:"\"a\"" form:"enum=a|b"`
		Parts []part         `json:"parts" yamlnode:"open"`
		Short []short        `json:"short" form:"nonempty"`
		Count map[string]int `json:"count"`
		Skip  string         `json:"-"`
	}
	want := `{
  "$id": "id",
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "additionalProperties": false,
  "properties": {
    "count": {
      "additionalProperties": {
        "type": "integer"
      },
      "type": "object"
    },
    "mode": {
      "default": "a",
      "enum": [
        "a",
        "b"
      ],
      "type": "string"
    },
    "parts": {
      "items": {
        "additionalProperties": true,
        "properties": {
          "name": {
            "description": "A name.",
            "minLength": 1,
            "type": "string"
          }
        },
        "required": [
          "name"
        ],
        "type": "object"
      },
      "type": "array"
    },
    "short": {
      "items": {
        "additionalProperties": false,
        "minLength": 1,
        "properties": {
          "path": {
            "type": "string"
          }
        },
        "type": [
          "string",
          "object"
        ]
      },
      "type": "array"
    }
  },
  "title": "title",
  "type": "object"
}
`
	if d := cmp.Diff(want, string(jsonschema.Of("id", "title", whole{}))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestOutput(t *testing.T) {
	type Shared struct {
		Note string `json:"note"`
	}
	type tree struct {
		Shared
		Children []tree `json:"children,omitempty"`
	}
	want := `{
  "$defs": {
    "tree": {
      "additionalProperties": false,
      "properties": {
        "children": {
          "items": {
            "$ref": "#/$defs/tree"
          },
          "type": "array"
        },
        "note": {
          "type": "string"
        }
      },
      "required": [
        "note"
      ],
      "type": "object"
    }
  },
  "$id": "id",
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "anyOf": [
    {
      "$ref": "#/$defs/tree"
    },
    {
      "items": {
        "additionalProperties": false,
        "properties": {
          "note": {
            "type": "string"
          }
        },
        "required": [
          "note"
        ],
        "type": "object"
      },
      "type": "array"
    }
  ],
  "title": "title"
}
`
	if d := cmp.Diff(want, string(jsonschema.Output("id", "title", tree{}, []Shared{}))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
