package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quayside/quayside/internal/helm/internal/wire"
)

// validateValues validates the values of a chart and its subcharts against their values.schema.json. Unlike
// Helm's function, it opens no file or connection for a reference to another schema.
func validateValues(c *chart.Chart, values map[string]any, chartPath string, w *watch) error {
	if c.Schema != nil {
		file := chartPath + "/values.schema.json"
		w.enter(file)
		err := validateAgainst(c.Schema, values)
		w.leave()
		if err != nil {
			return &wire.Error{Path: file, Msg: "values do not match the schema: " + oneLine(err.Error())}
		}
	}
	for _, sub := range c.Dependencies() {
		raw, ok := values[sub.Name()]
		if !ok || raw == nil {
			continue
		}
		below, ok := asMap(raw)
		if !ok {
			return fmt.Errorf("invalid type for the values of subchart %s: expected a map, not %T", sub.Name(), raw)
		}
		if err := validateValues(sub, below, chartPath+"/charts/"+sub.Name(), w); err != nil {
			return err
		}
	}
	return nil
}

func validateAgainst(schema []byte, values map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the schema cannot be used: %v", r)
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	const url = "file:///values.schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	validator, err := c.Compile(url)
	if err != nil {
		return err
	}
	err = validator.Validate(values)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(strings.TrimPrefix(invalid.Error(), "jsonschema validation failed with '"+url+"#'\n"))
	}
	return err
}

// noLoader refuses to load a schema. For a URN, it returns a schema that accepts any value, as Helm does.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	return nil, fmt.Errorf("the schema refers to %s, which is outside of the chart", url)
}
