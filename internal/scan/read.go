package scan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/imageref"
	"github.com/quayside/quayside/internal/inert"
)

// Bounds of what is read.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20  // of one file
	maxFound = 1_000_000 // vulnerabilities in all files
	maxNames = 100       // digests of one image, and other names of one vulnerability
	maxText  = 600       // bytes of a name, a version or an address
)

// LoadFS reads every file below the top of fsys whose name ends in .json, in the
// order of their paths. There has to be one. The error is a diag.List with the
// first fault of each file that cannot be read; positions are relative to the top.
func LoadFS(fsys fs.FS) (*Results, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(strings.ToLower(name), ".json") {
			names = append(names, name)
		}
		if err == nil && len(names) > maxFiles {
			err = fmt.Errorf("more than the %d files allowed", maxFiles)
		}
		return err
	})
	if err != nil {
		return nil, diag.List{diag.Errorf(diag.Pos{}, "%w", err)}
	}
	if len(names) == 0 {
		return nil, diag.List{diag.Errorf(diag.Pos{}, "no results of a scan here: want files like those of trivy image --format json, or of grype --output json, with names that end in .json")}
	}
	var faults diag.List
	var scans []report
	room := maxFound
	for _, name := range names {
		data, err := readFile(fsys, name)
		var one report
		if err == nil {
			one, err = decode(name, data, &room)
		}
		faults.Add(diag.Pos{File: name}, err)
		scans = append(scans, one)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return newResults(scans), nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("more than the %d bytes allowed", maxBytes)
	}
	return data, err
}

// decode reads one file. room is how many vulnerabilities there may still be, and
// is lowered by those that there are.
func decode(name string, data []byte, room *int) (report, error) {
	r := reader{file: name, data: data, dec: jsontext.NewDecoder(bytes.NewBuffer(data)), room: room}
	out := report{file: name}
	err := r.document(&out)
	if end := r.next(); err == nil {
		if _, more := r.dec.ReadToken(); !errors.Is(more, io.EOF) {
			err = r.at(end, "more than one value in the file")
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = r.at(len(data), "ends too early: want one value of JSON")
	case errors.As(err, &syntax):
		err = r.at(int(syntax.ByteOffset), "malformed JSON: %v", syntax.Err)
	}
	return out, err
}

// reader reads one file.
type reader struct {
	file string
	data []byte
	dec  *jsontext.Decoder
	room *int
}

// next returns the offset at which the value that comes next begins.
func (r *reader) next() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[i]) >= 0 {
		i++
	}
	return i
}

// at returns an error at an offset.
func (r *reader) at(offset int, format string, args ...any) error {
	before := r.data[:min(max(offset, 0), len(r.data))]
	pos := diag.Pos{File: r.file, Line: bytes.Count(before, []byte("\n")) + 1, Col: len(before) - bytes.LastIndexByte(before, '\n')}
	return diag.Errorf(pos, format, args...)
}

// document reads the whole file, in either form.
func (r *reader) document(out *report) error {
	trivy, grype := false, false
	if r.dec.PeekKind() == '[' {
		return r.at(r.next(), "a list: this may be from a version of Trivy before 0.20, which names no image")
	}
	err := r.object(func(key string) error {
		switch key {
		case "SchemaVersion":
			trivy = true
			return r.schema()
		case "ArtifactName":
			return r.name(out)
		case "Metadata":
			return r.object(func(key string) error {
				if key == "RepoDigests" {
					return r.digests(out)
				}
				return r.dec.SkipValue()
			})
		case "Results":
			return r.list(func() error { return r.trivyResult(out) })
		case "matches":
			grype = true
			return r.list(func() error { return r.grypeMatch(out) })
		case "source":
			return r.object(func(key string) error { return r.grypeSource(key, out) })
		default:
			return r.dec.SkipValue()
		}
	})
	if err == nil && trivy == grype {
		return diag.Errorf(diag.Pos{File: r.file}, "neither what trivy image --format json writes (SchemaVersion), nor what grype --output json does (matches)")
	}
	return err
}

// schema reads the version of Trivy's form.
func (r *reader) schema() error {
	from := r.next()
	value, err := r.dec.ReadValue()
	if err == nil && string(value) != "2" {
		return r.at(from, "SchemaVersion %s of Trivy's form is not known, 2 is", inert.Cut(string(value), 20))
	}
	return err
}

// name reads what the scanner calls the image, which may have its digest.
func (r *reader) name(out *report) error {
	err := r.text(&out.name)
	if d := imageref.DigestIn(out.name); err == nil && imageref.IsDigest(d) {
		out.digest(d)
	}
	return err
}

// digests reads a list of names with digests.
func (r *reader) digests(out *report) error {
	return r.list(func() error {
		from := r.next()
		var ref string
		if err := r.text(&ref); err != nil {
			return err
		}
		d := imageref.DigestIn(ref)
		if !imageref.IsDigest(d) {
			return r.at(from, "%q has no digest such as app@sha256:…", inert.Cut(ref, 200))
		}
		if out.name == "" {
			out.name = ref
		}
		if out.digest(d); len(out.digests) > maxNames {
			return r.at(from, "more than the %d digests allowed of one image", maxNames)
		}
		return nil
	})
}

// digest adds the digest of what was scanned.
func (s *report) digest(d string) {
	for _, has := range s.digests {
		if has == d {
			return
		}
	}
	s.digests = append(s.digests, d)
}

// add adds a vulnerability whose ID stands at an offset.
func (r *reader) add(out *report, from int, v Vulnerability) error {
	if !name().MatchString(v.ID) {
		return r.at(from, "%q is no name of a vulnerability, such as CVE-2026-1234", inert.Cut(v.ID, 100))
	}
	if v.Package == "" {
		return r.at(from, "%s: of no package", v.ID)
	}
	if *r.room--; *r.room < 0 {
		return r.at(from, "more than the %d vulnerabilities allowed", maxFound)
	}
	out.found = append(out.found, v)
	return nil
}

var name = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once, and only where scans are read
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)
})

// object calls do with the name of each member of the object that comes next; do
// reads its value. null has none.
func (r *reader) object(do func(key string) error) error {
	return r.inside('{', '}', "an object", func() error {
		key, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		return do(key.String())
	})
}

// list calls do for each element of the list that comes next; do reads it. null has
// none.
func (r *reader) list(do func() error) error { return r.inside('[', ']', "a list", do) }

func (r *reader) inside(from, to jsontext.Kind, what string, do func() error) error {
	switch kind := r.dec.PeekKind(); {
	case kind == 'n':
		return r.dec.SkipValue()
	case kind == 0: // malformed: reading says how
	case kind != from:
		return r.at(r.next(), "want %s", what)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() != to {
		if err := do(); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

// text reads the text that comes next, as much of it as is kept. null is empty.
func (r *reader) text(into *string) error {
	switch kind := r.dec.PeekKind(); kind {
	case 'n':
		return r.dec.SkipValue()
	case '"', 0:
	default:
		return r.at(r.next(), "want text")
	}
	token, err := r.dec.ReadToken()
	if err == nil {
		*into = inert.Cut(token.String(), maxText)
	}
	return err
}

// severity reads the severity that comes next.
func (r *reader) severity(into *Severity) error {
	from := r.next()
	var word string
	if err := r.text(&word); err != nil {
		return err
	}
	s, err := ParseSeverity(word)
	if err != nil {
		return r.at(from, "%w", err)
	}
	*into = s
	return nil
}

// link reads an address, which is left out where it is none of a page.
func (r *reader) link(into *string) error {
	var text string
	err := r.text(&text)
	*into = inert.URL(text)
	return err
}

// title reads the first line of a text.
func (r *reader) title(into *string) error {
	var text string
	err := r.text(&text)
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	*into = inert.Clip(first, 200)
	return err
}
