package terminal

import (
	"bytes"
	"testing"

	"github.com/quayside/quayside/internal/diag"
)

func TestWarn(t *testing.T) {
	const hint = "  hint: fix the cause of a warning, or silence it with a waiver for its [code]: docs/warnings.md\n"
	minor := diag.Warning{Code: "manifest-converted", Msg: "converted", Minor: true}
	for _, c := range []struct {
		name           string
		quiet, verbose bool
		warnings       []diag.Warning
		want           string
	}{
		{"ok/hint", false, false, []diag.Warning{{Code: "a", Msg: "x"}, {Code: "b", Msg: "y"}}, "warning: x [a]\nwarning: y [b]\n" + hint + "wrote\n"},
		{"ok/quiet", true, false, []diag.Warning{{Code: "a", Msg: "x"}}, ""},
		{"ok/waived", false, true, []diag.Warning{{Code: "a", Msg: "x", Waived: true}}, "wrote\n"},
		{"ok/minor", false, false, []diag.Warning{minor}, "wrote\n"},
		{"ok/minor-verbose", false, true, []diag.Warning{minor}, "warning: converted [manifest-converted]\n" + hint + "wrote\n"},
		{"ok/about-a-waiver", false, false, []diag.Warning{{Code: "waiver-unused", Msg: "x"}}, "warning: x [waiver-unused]\nwrote\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			log := NewLogger(New(&b, nil))
			log.Quiet, log.Verbose = c.quiet, c.verbose
			log.Warn(c.warnings)
			log.Note("wrote")
			log.Hint()
			if got := b.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
