package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/lifecycle"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/resolve"
)

// operatorFlag is --upgrade and --upgrade=[namespace/]package[@version], and
// others that are for all operators or for some. Without a namespace a target's is
// empty: see project.Placed.
type operatorFlag struct {
	name     string // "upgrade"; empty for arguments
	versions bool   // may be named, too
	all      bool
	named    []resolve.Target
}

// dayFlag is --today: the day that support and waivers are judged on, in place of
// the present one.
type dayFlag struct{ day string }

// String returns nothing: the default is not the same tomorrow.
func (f *dayFlag) String() string { return "" }

// Type names the value in usage lines.
func (f *dayFlag) Type() string { return "date" }

// Set takes a day.
func (f *dayFlag) Set(s string) error {
	f.day = s
	return lifecycle.CheckDay(s)
}

// text returns the day.
func (f *dayFlag) text() string { return cmp.Or(f.day, time.Now().UTC().Format(time.DateOnly)) }

// time returns when the day begins, or the present.
func (f *dayFlag) time() time.Time {
	if t, err := time.Parse(time.DateOnly, f.day); err == nil {
		return t
	}
	return time.Now()
}

// addToday gives cmd the flag; what is what it judges by the day.
func addToday(cmd *cobra.Command, f *dayFlag, what string) {
	cmd.Flags().Var(f, "today", "judge "+what+" as on this `DATE`, as in 2026-01-31 (default: the present day)")
}

// addScan gives cmd the flag for what scanners found.
func addScan(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "scan", "", "compare what scanners found in the images, too: `DIR` holds the JSON of Trivy or Grype, a file for each image")
}

// scans reads what scanners found; nil where no directory is named.
func (a *app) scans(dir string) (*scan.Results, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.ReadDir(a.argPath(dir)); err != nil {
		return nil, fmt.Errorf("--scan: %w", err)
	}
	found, err := scan.LoadFS(os.DirFS(a.argPath(dir)))
	return found, diag.Below(filepath.ToSlash(dir), err)
}

// allOperators is what such a flag means without a value.
const allOperators = "all"

// String returns nothing: there is no default to show.
func (f *operatorFlag) String() string { return "" }

// Type names the value in usage lines.
func (f *operatorFlag) Type() string { return "operator" }

// Set adds one operator, or all.
func (f *operatorFlag) Set(s string) error {
	if s == allOperators {
		f.all = true
		return nil
	}
	t, ok := parseTarget(s, f.versions)
	switch {
	case ok:
		if t.At.File = s; f.name != "" {
			t.At.File = "--" + f.name + "=" + s
		}
		f.named = append(f.named, t)
		return nil
	case f.versions:
		return errors.New("want [namespace/]package or [namespace/]package@version")
	default:
		return errors.New("want [namespace/]package")
	}
}

// parseTarget reads "[namespace/]package" and, where it is allowed, "@version".
func parseTarget(s string, version bool) (resolve.Target, bool) {
	t := resolve.Target{Package: s}
	at, slash := false, false
	if version {
		t.Package, t.Version, at = strings.Cut(s, "@")
	}
	if t.Namespace, t.Package, slash = strings.Cut(t.Package, "/"); !slash {
		t.Namespace, t.Package = "", t.Namespace
	}
	bad := t.Package == "" || slash && t.Namespace == "" || strings.ContainsAny(t.Package, "/@") || at && t.Version == ""
	return t, !bad
}

func (f *operatorFlag) any() bool { return f.all || len(f.named) > 0 }

// parseHops reads --hops: a number from 1, or all.
func parseHops(s string) (int, error) {
	if s == "all" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--hops %q: want a number from 1, or all", s)
	}
	return n, nil
}
