package filetree

import (
	"bytes"
	"maps"
	"testing"
)

// TestEdits checks MergesCleanly for pairs of edits of one tree.
func TestEdits(t *testing.T) {
	base := tree(t, map[string]string{"d/b": "1", "d/d": "1", "d/f": "1", "e/a": "1"})
	with := func(changes map[string]string) *Tree {
		files := map[string]string{"d/b": "1", "d/d": "1", "d/f": "1", "e/a": "1"}
		for name, text := range changes {
			if files[name] = text; text == "-" {
				delete(files, name)
			}
		}
		return tree(t, files)
	}
	for name, c := range map[string]struct {
		a, b  map[string]string
		apart bool
	}{
		"neighbours":                    {map[string]string{"d/b": "2"}, map[string]string{"d/d": "2"}, true},
		"the same file":                 {map[string]string{"d/b": "2"}, map[string]string{"d/b": "3"}, false},
		"the same file, alike":          {map[string]string{"d/b": "2"}, map[string]string{"d/b": "2"}, true},
		"added in one place":            {map[string]string{"d/c": "2"}, map[string]string{"d/ca": "2"}, false},
		"added alike":                   {map[string]string{"d/c": "2"}, map[string]string{"d/c": "2"}, true},
		"added alike, and more":         {map[string]string{"d/c": "2"}, map[string]string{"d/c": "2", "d/ca": "2"}, false},
		"added in two places":           {map[string]string{"d/a": "2"}, map[string]string{"d/c": "2"}, true},
		"added in two new places":       {map[string]string{"x/a": "2"}, map[string]string{"y/a": "2"}, true},
		"added next to a change":        {map[string]string{"d/c": "2"}, map[string]string{"d/b": "2", "d/d": "2"}, true},
		"removed next to an added file": {map[string]string{"d/b": "-"}, map[string]string{"d/c": "2"}, false},
		"removed next to a change":      {map[string]string{"d/b": "-"}, map[string]string{"d/d": "2"}, true},
		"neighbours removed":            {map[string]string{"d/b": "-"}, map[string]string{"d/d": "-"}, false},
		"others removed":                {map[string]string{"d/b": "-"}, map[string]string{"d/f": "-"}, true},
		"removed in both":               {map[string]string{"e/a": "-"}, map[string]string{"e/a": "-"}, false},
		"removed and changed":           {map[string]string{"e/a": "-"}, map[string]string{"e/a": ""}, false},
		"emptied in both":               {map[string]string{"e/a": ""}, map[string]string{"e/a": ""}, true},
	} {
		a, b := EditsOf(base, with(c.a)), EditsOf(base, with(c.b))
		if got := []bool{a.MergesCleanly(b), b.MergesCleanly(a)}; got[0] != c.apart || got[1] != c.apart {
			t.Errorf("%s: got %v, want %v", name, got, c.apart)
		}
	}
}

// TestApply applies edits to a tree that has more files than the base of the edits. Apply must fail if an
// edited file differs from the base.
func TestApply(t *testing.T) {
	base := tree(t, map[string]string{"d/a": "1", "d/b": "1", "d/c": "1"})
	next := tree(t, map[string]string{"d/a": "2", "d/c": "1", "d/d": "1"})
	have, err := SimulateWrite(New(), tree(t, map[string]string{"d/a": "1", "d/b": "1", "d/c": "x", "e/other": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := have.Add("d/users", []byte("1")); err != nil {
		t.Fatal(err)
	}
	got, err := EditsOf(base, next).Apply(base, have)
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, map[string]string{"d/a": "2", "d/c": "x", "d/d": "1", "e/other": "1"})
	if !maps.EqualFunc(got.files, want.files, bytes.Equal) {
		t.Errorf("got %q, want %q", got.files, want.files)
	}
	for name, text := range map[string]string{"d/a": "x", "d/b": "x", "d/d": "1"} {
		files := map[string]string{"d/a": "1", "d/b": "1", "d/c": "1"}
		files[name] = text
		have, err := SimulateWrite(New(), tree(t, files))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := EditsOf(base, next).Apply(base, have); err == nil {
			t.Errorf("%s differs from the base, and the edits were applied", name)
		}
	}
}
