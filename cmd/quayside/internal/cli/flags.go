package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/resolve"
)

// operatorFlag is a flag that selects all operators (--upgrade) or some
// (--upgrade=[namespace/]package[@version]). If a target has no namespace, workspace.WithNamespace adds one
// later.
type operatorFlag struct {
	name     string // name of the flag, such as "upgrade"; empty for arguments
	versions bool   // whether values may have a version
	all      bool
	named    []resolve.Target
}

// timeFlag is the value of --now. The zero value means the current time.
type timeFlag struct{ time.Time }

// String returns "", because the flag has no default.
func (f *timeFlag) String() string { return "" }

// Type returns the name of the value in usage lines.
func (f *timeFlag) Type() string { return "time" }

// Set parses a time with an offset. It also accepts a date, which means midnight UTC.
func (f *timeFlag) Set(s string) (err error) {
	if f.Time, err = time.Parse(time.RFC3339, s); err == nil {
		return nil
	}
	if f.Time, err = time.Parse(time.DateOnly, s); err != nil {
		return errors.New("must be a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z")
	}
	return nil
}

// orNow returns the time. Without the flag, it is the current time.
func (f *timeFlag) orNow() time.Time {
	return cmp.Or(f.Time, time.Now()).UTC()
}

// addNow adds the flag --now to cmd. what is the object to evaluate, for its description, such as "the windows".
func addNow(cmd *cobra.Command, a *app, what string) {
	cmd.Flags().Var(&a.now, "now", "evaluate "+what+" as of this `TIME`, such as 2026-01-31 or 2026-01-31T12:00:00Z (default: now)")
}

// addOutsideWindow adds the flag --outside-window to cmd.
func addOutsideWindow(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "outside-window", "", "also change operators outside of their windows (spec.windows, spec.freeze), for this `REASON`, which the lock records")
}

// addScan adds the flag --scan to cmd.
func addScan(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "scan", "", "also compare the images' vulnerabilities: `DIR` with JSON reports of Trivy or Grype, one file for each image")
}

// readScans reads the scanner results in dir. It returns nil if dir is empty.
func (a *app) readScans(dir string) (*scan.Results, error) {
	if dir == "" {
		return nil, nil
	}
	files, base, err := filetree.LookupIn(a.dir)(dir)
	if err == nil && base != "" {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--scan: %w", err)
	}
	found, err := scan.LoadFS(files)
	return found, diag.PrefixPositions(filepath.ToSlash(dir), err)
}

// allOperators is the value of an operatorFlag that is given without an operator.
const allOperators = "all"

// String returns "", because the flag has no default.
func (f *operatorFlag) String() string { return "" }

// Type returns the name of the value in usage lines.
func (f *operatorFlag) Type() string { return "operator" }

// Set adds one operator to the selected ones, or selects all operators.
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
		if !slices.Contains(f.named, t) {
			f.named = append(f.named, t)
		}
		return nil
	case f.versions:
		return errors.New("must be [namespace/]package or [namespace/]package@version")
	default:
		return errors.New("must be [namespace/]package")
	}
}

// parseTarget parses "[namespace/]package". If version is true, it also accepts
// "[namespace/]package@version".
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

func (f *operatorFlag) isSet() bool { return f.all || len(f.named) > 0 }

// parseHops parses --hops: a number of at least 1, or "all", for which it returns -1.
func parseHops(s string) (int, error) {
	if s == "all" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--hops %q: must be a number from 1, or all", s)
	}
	return n, nil
}

// printText prints v. In text format, it prints text instead.
func (a *app) printText(v any, text string) error {
	return a.print(v, func(w io.Writer) { fmt.Fprintln(w, strings.TrimSuffix(text, "\n")) })
}

// parseOperatorArg parses "[namespace/]package". If version is true, it also accepts
// "[namespace/]package@version". The target may have no namespace; see workspace.WithNamespace.
func parseOperatorArg(cmd *cobra.Command, arg string, version bool) (resolve.Target, error) {
	t, ok := parseTarget(arg, version)
	if !ok {
		want := "[namespace/]package"
		if version {
			want += "[@version]"
		}
		return t, Usagef(cmd, "%q: must be %s", arg, want)
	}
	return t, nil
}
