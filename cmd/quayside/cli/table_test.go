package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quayside/quayside/registry"
)

func TestTable(t *testing.T) {
	tbl := &table{head: []string{"package", "description"}}
	tbl.add("etcd", "a\tkey\nvalue\x1b[2J store")
	tbl.add("höhe", "short")
	for _, c := range []struct {
		name string
		term terminal
		want string
	}{
		{"ok/pipe", terminal{}, "etcd\ta key value\\u001b[2J store\nhöhe\tshort\n"},
		{"ok/terminal", terminal{tty: true, width: 80}, "PACKAGE  DESCRIPTION\netcd     a key value\\u001b[2J store\nhöhe     short\n"},
		{"ok/narrow", terminal{tty: true, width: 14}, "PACKAGE  DESC…\netcd     a ke…\nhöhe     short\n"},
		{"ok/color", terminal{tty: true, width: 80, color: true}, "\x1b[1mPACKAGE  DESCRIPTION\x1b[0m\netcd     a key value\\u001b[2J store\nhöhe     short\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			c.term.Writer = &b
			tbl.write(&c.term)
			if got := b.String(); got != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

// TestTableNarrow shows every column on a terminal that has no room for them beside
// each other, and nothing where there is no row.
func TestTableNarrow(t *testing.T) {
	tbl := &table{head: []string{"image", "role", "operators", "clusters"}}
	tbl.add("quay.io/org/name@sha256:0000", "related", "vault/vault,vault/etcd", "")
	tbl.add("quay.io/org/other:v1", "bundle", "vault/etcd", "lab")
	var b bytes.Buffer
	term := &terminal{Writer: &b, device: &b, tty: true, width: 40}
	tbl.write(term)
	want := "quay.io/org/name@sha256:0000\n  role: related\n  operators: vault/vault,vault/etcd\n" +
		"quay.io/org/other:v1\n  role: bundle  operators: vault/etcd\n  clusters: lab\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	(&table{head: tbl.head}).write(term)
	if b.Len() > 0 {
		t.Errorf("without a row: %q", b.String())
	}
}

func TestTableRows(t *testing.T) {
	tbl := &table{uncut: true, head: []string{"operator", "message"}}
	tbl.add("etcd", "all is well")
	tbl.add("vault", "a long story")
	tbl.paint(red)
	var b bytes.Buffer
	tbl.write(&terminal{Writer: &b, device: &b, tty: true, width: 14, color: true})
	want := "\x1b[1mOPERATOR  MESSAGE\x1b[0m\netcd      all is well\n\x1b[31mvault     a long story\x1b[0m\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestProgressOnlyOnTerminals(t *testing.T) {
	for _, tty := range []bool{false, true} {
		var b bytes.Buffer
		talk := newTalk(&terminal{Writer: &b, device: &b, tty: tty, width: 20})
		talk.Progress("reading a catalog with a long name")
		talk.Note("done")
		want := "done\n"
		if tty {
			want = "\r\x1b[Kreading a catalog w\r\x1b[Kdone\n"
		}
		if got := b.String(); got != want {
			t.Errorf("tty %v: got %q, want %q", tty, got, want)
		}
	}
}

// TestPullProgress counts bytes and layers over several layers at once, and
// leaves other images and repetitions out of it.
func TestPullProgress(t *testing.T) {
	var b bytes.Buffer
	p := newTalk(&terminal{Writer: &b, device: &b, tty: true, width: 70})
	for _, now := range []registry.Progress{
		{Image: "quay.io/org/a:v1", Digest: "1", Total: 3_000_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Total: 1_500_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 700_000, Total: 1_500_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 700_001, Total: 1_500_000},
		{Image: "quay.io/org/b:v1", Digest: "3", Done: 1, Total: 1_000_000},
		{Image: "quay.io/org/a:v1", Digest: "2", Done: 1_500_000, Total: 1_500_000},
	} {
		p.Pull(now)
	}
	p.noteBetween("done")
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
