package clitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/quayside/quayside/cmd/quayside/internal/cli"
)

// Conforms checks the standard output of a command line. With -o json or -o yaml, it must be one
// document that conforms to the command's schema, even if the command failed.
func Conforms(parts []cli.Part, args []string, stdout []byte) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	format := flags.StringP("output", "o", "", "")
	_ = flags.Parse(args) // invalid flags are tested elsewhere
	if *format != "json" && *format != "yaml" || slices.Contains(args, "--help") {
		return nil
	}
	if len(stdout) == 0 {
		return fmt.Errorf("-o %s: no output", *format)
	}
	data, err := yaml.YAMLToJSON(stdout)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	name := "version" // an unknown command prints no document: use the schema of a command that always exists
	if cmd, _, err := cli.Commands(parts).Find(args); err == nil && cmd.Flag("output") != nil {
		name = schemaName(cmd)
	}
	schema, err := compileSchema(parts, name)
	if err == nil {
		err = schema.Validate(document)
	}
	return err
}

// schemaName returns the schema name of a command's output.
func schemaName(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return strings.ReplaceAll(path, " ", "-")
}

// schemas caches the compiled schemas by name.
var schemas sync.Map //nolint:gochecknoglobals // a cache: compiling a schema takes as long as running a command

func compileSchema(parts []cli.Part, name string) (*jsonschema.Schema, error) {
	if known, ok := schemas.Load(name); ok {
		return known.(*jsonschema.Schema), nil
	}
	var text bytes.Buffer
	if cli.Main(parts, []string{"schema", name}, nil, &text, io.Discard, nil) != 0 {
		return nil, errors.New("no schema " + name)
	}
	document, err := jsonschema.UnmarshalJSON(&text)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", document); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("schema.json")
	if err == nil {
		schemas.Store(name, compiled)
	}
	return compiled, err
}

// Documented returns the sorted names of the commands that print a document.
func Documented(parts []cli.Part) []string {
	var names []string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Flag("output") != nil {
			names = append(names, schemaName(cmd))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(cli.Commands(parts))
	slices.Sort(names)
	return names
}
