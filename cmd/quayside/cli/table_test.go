package cli

import (
	"bytes"
	"testing"
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
		{"ok/pipe", terminal{}, "etcd\ta key value [2J store\nhöhe\tshort\n"},
		{"ok/terminal", terminal{tty: true, width: 80}, "PACKAGE  DESCRIPTION\netcd     a key value [2J store\nhöhe     short\n"},
		{"ok/narrow", terminal{tty: true, width: 14}, "PACKAGE  DESC…\netcd     a ke…\nhöhe     short\n"},
		{"ok/color", terminal{tty: true, width: 80, color: true}, "\x1b[1mPACKAGE  DESCRIPTION\x1b[0m\netcd     a key value [2J store\nhöhe     short\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			c.term.Writer = &b
			if err := tbl.write(&c.term); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != c.want {
				t.Errorf("got\n%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestProgressOnlyOnTerminals(t *testing.T) {
	for _, tty := range []bool{false, true} {
		var b bytes.Buffer
		talk := newTalk(&terminal{Writer: &b, tty: tty, width: 20})
		talk.progress("reading a catalog with a long name")
		talk.note("done")
		want := "done\n"
		if tty {
			want = "\r\x1b[Kreading a catalog w\r\x1b[Kdone\n"
		}
		if got := b.String(); got != want {
			t.Errorf("tty %v: got %q, want %q", tty, got, want)
		}
	}
}
