package cli

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// Conforms says what is wrong with the standard output of a command line, which
// may have come to nothing: whoever asks for JSON or YAML gets one document,
// which is as the command's schema says.
func Conforms(args []string, stdout []byte) error {
	format := outputOf(args)
	if format != "json" && format != "yaml" || slices.Contains(args, "--help") {
		return nil
	}
	if len(stdout) == 0 {
		return fmt.Errorf("-o %s: nothing was printed", format)
	}
	data, err := yaml.YAMLToJSON(stdout)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	a := newTestApp()
	name := "version" // any: what is no command comes to nothing
	if cmd, _, err := a.root.Find(args); err == nil && a.documents[cmd] != nil {
		name = schemaName(cmd)
	}
	schema, err := compiled(a.schemas()[name]())
	if err == nil {
		err = schema.Validate(document)
	}
	return err
}

func compiled(schema []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", document); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// Documented returns the names of the commands that print a document, sorted.
func Documented() []string {
	var names []string
	for cmd := range newTestApp().documents {
		names = append(names, schemaName(cmd))
	}
	slices.Sort(names)
	return names
}
