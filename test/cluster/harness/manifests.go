package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Objects returns the objects in a YAML or JSON stream in order, without empty documents. Numbers
// are not converted.
func Objects(stream []byte) ([]*unstructured.Unstructured, error) {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	var objects []*unstructured.Unstructured
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		o := new(unstructured.Unstructured)
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if o.GetKind() == "" || o.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d: the object lacks a kind or an apiVersion", n)
		}
		objects = append(objects, o)
	}
}
