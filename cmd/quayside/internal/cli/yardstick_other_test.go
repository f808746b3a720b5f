//go:build !linux

package cli_test

import "errors"

func readTokens([]string) error { return errors.New("only for Linux") }
