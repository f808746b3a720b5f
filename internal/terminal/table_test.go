package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	tbl := &Table{Head: []string{"package", "description"}}
	tbl.Add("etcd", "a\tkey\nvalue\x1b[2J store")
	tbl.Add("höhe", "short")
	for _, c := range []struct {
		name string
		term Terminal
		want string
	}{
		{"ok/pipe", Terminal{}, "PACKAGE\tDESCRIPTION\netcd\ta key value\\u001b[2J store\nhöhe\tshort\n"},
		{"ok/terminal", Terminal{TTY: true, width: 80}, "PACKAGE  DESCRIPTION\netcd     a key value\\u001b[2J store\nhöhe     short\n"},
		{"ok/narrow", Terminal{TTY: true, width: 14}, "PACKAGE  DESC…\netcd     a ke…\nhöhe     short\n"},
		{"ok/color", Terminal{TTY: true, width: 80, Color: true}, "\x1b[1mPACKAGE  DESCRIPTION\x1b[0m\netcd     a key value\\u001b[2J store\nhöhe     short\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			c.term.Writer = &b
			tbl.Write(&c.term)
			if got := b.String(); got != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// TestTableNarrow checks that every column is shown on a terminal that is too narrow for one
// line per row, and that an empty table prints nothing.
func TestTableNarrow(t *testing.T) {
	tbl := &Table{Head: []string{"image", "role", "operators", "clusters"}}
	tbl.Add("quay.io/org/name@sha256:0000", "related", "vault/vault,vault/etcd", "")
	tbl.Add("quay.io/org/other:v1", "bundle", "vault/etcd", "lab")
	var b bytes.Buffer
	term := &Terminal{Writer: &b, Device: &b, TTY: true, width: 40}
	tbl.Write(term)
	want := "quay.io/org/name@sha256:0000\n  role: related\n  operators: vault/vault,vault/etcd\n" +
		"quay.io/org/other:v1\n  role: bundle  operators: vault/etcd\n  clusters: lab\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	(&Table{Head: tbl.Head}).Write(term)
	if b.Len() > 0 {
		t.Errorf("without rows: %q", b.String())
	}
}

func TestTableRows(t *testing.T) {
	tbl := &Table{Uncut: true, Head: []string{"operator", "message"}}
	tbl.Add("etcd", "all is well")
	tbl.Add("vault", "a long story")
	tbl.Paint(Red)
	var b bytes.Buffer
	tbl.Write(&Terminal{Writer: &b, Device: &b, TTY: true, width: 14, Color: true})
	want := "\x1b[1mOPERATOR  MESSAGE\x1b[0m\netcd      all is well\n\x1b[31mvault     a long story\x1b[0m\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestProgressOnlyOnTerminals(t *testing.T) {
	for _, tty := range []bool{false, true} {
		var b bytes.Buffer
		log := NewLogger(&Terminal{Writer: &b, Device: &b, TTY: tty, width: 20})
		log.Progress("reading a catalog with a long name")
		log.Note("done")
		want := "done\n"
		if tty {
			want = "\r\x1b[Kreading a catalog w\r\x1b[Kdone\n"
		}
		if got := b.String(); got != want {
			t.Errorf("TTY %v: got %q, want %q", tty, got, want)
		}
	}
}

// TestPullProgress fetches several layers at once. The progress line must count bytes and layers separately for
// each image, and must not be repeated.
func TestPullProgress(t *testing.T) {
	var b bytes.Buffer
	p := NewLogger(&Terminal{Writer: &b, Device: &b, TTY: true, width: 70})
	for _, blob := range []struct {
		Image, Digest string
		Done, Total   int64
	}{
		{Image: "quay.io/org/a:v1", Digest: "1", Total: 3_000_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Total: 1_500_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 700_000, Total: 1_500_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 700_001, Total: 1_500_000},
		{Image: "quay.io/org/b:v1", Digest: "3", Done: 1, Total: 1_000_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 1_500_000, Total: 1_500_000},
	} {
		p.Pull(blob.Image, blob.Digest, blob.Done, blob.Total)
	}
	p.NoteDuringPull("done")
	want := strings.Join([]string{
		"",
		"fetching 0.0 of 3.0 MB, 0 of 1 layer of quay.io/org/a:v1",
		"fetching 0.0 of 4.5 MB, 0 of 2 layers of quay.io/org/a:v1",
		"fetching 0.7 of 4.5 MB, 0 of 2 layers of quay.io/org/a:v1",
		"fetching 0.0 of 1.0 MB, 0 of 1 layer of quay.io/org/b:v1",
		"fetching 1.5 of 4.5 MB, 1 of 2 layers of quay.io/org/a:v1",
		"done\n",
	}, "\r\x1b[K")
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
