package cli

// Parts are the parts of the program.
var Parts []Part //nolint:gochecknoglobals // set by the external tests, because this package must not import them
