//go:build !linux

package cli_test

import "errors"

func account([]string) error { return errors.New("only for Linux") }

func readTokens([]string) error { return errors.New("only for Linux") }
