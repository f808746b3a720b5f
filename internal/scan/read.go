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
	"github.com/quayside/quayside/internal/sanitize"
)

// Limits of the input.
const (
	maxFiles = 10_000
	maxBytes = 64 << 20  // size of one file
	maxFound = 1_000_000 // vulnerabilities in all files
	maxNames = 100       // digests of one image, or related IDs of one vulnerability
	maxText  = 600       // bytes of a name, version or URL
)

// LoadFS reads all files with the extension .json in fsys, in the order of their paths. It returns an error if
// there are none. For invalid files, the error is a diag.List with the first fault of each file. Its positions
// are relative to the root of fsys.
func LoadFS(fsys fs.FS) (*Results, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(strings.ToLower(name), ".json") {
			names = append(names, name)
		}
		if err == nil && len(names) > maxFiles {
			err = fmt.Errorf("more than %d files", maxFiles)
		}
		return err
	})
	if err != nil {
		return nil, diag.List{diag.Errorf(diag.Pos{}, "%w", err)}
	}
	if len(names) == 0 {
		return nil, diag.List{diag.Errorf(diag.Pos{}, "no scan reports found: expected .json files of 'trivy image --format json' or 'grype --output json'")}
	}
	var faults diag.List
	var scans []imageScan
	remaining := maxFound
	for _, name := range names {
		data, err := readFile(fsys, name)
		var result imageScan
		if err == nil {
			result, err = decodeScan(name, data, &remaining)
		}
		faults.Add(diag.Pos{File: name}, err)
		scans = append(scans, result)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return newResults(scans), nil
}

// readFile reads a file of at most maxBytes.
func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("larger than %d bytes", maxBytes)
	}
	return data, err
}

// decodeScan decodes a scan report. remaining is the maximum number of vulnerabilities in this and all further
// reports. decodeScan subtracts the number in this report.
func decodeScan(name string, data []byte, remaining *int) (imageScan, error) {
	r := reader{file: name, data: data, dec: jsontext.NewDecoder(bytes.NewBuffer(data)), remaining: remaining}
	out := imageScan{file: name}
	err := r.readDocument(&out)
	if end := r.nextOffset(); err == nil {
		if _, extra := r.dec.ReadToken(); !errors.Is(extra, io.EOF) {
			err = r.errorAt(end, "more than one value in the file")
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = r.errorAt(len(data), "truncated JSON")
	case errors.As(err, &syntax):
		err = r.errorAt(int(syntax.ByteOffset), "malformed JSON: %v", syntax.Err)
	}
	return out, err
}

// reader decodes a scan report.
type reader struct {
	file      string
	data      []byte
	dec       *jsontext.Decoder
	remaining *int
}

// nextOffset returns the offset of the next JSON value in data.
func (r *reader) nextOffset() int {
	i := int(r.dec.InputOffset())
	for i < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[i]) >= 0 {
		i++
	}
	return i
}

// errorAt returns an error with the position that belongs to an offset in data.
func (r *reader) errorAt(offset int, format string, args ...any) error {
	before := r.data[:min(max(offset, 0), len(r.data))]
	pos := diag.Pos{File: r.file, Line: bytes.Count(before, []byte("\n")) + 1, Col: len(before) - bytes.LastIndexByte(before, '\n')}
	return diag.Errorf(pos, format, args...)
}

// readDocument reads a report of Trivy or Grype.
func (r *reader) readDocument(out *imageScan) error {
	trivy, grype := false, false
	if r.dec.PeekKind() == '[' {
		return r.errorAt(r.nextOffset(), "reports of Trivy before 0.20 are not supported: they are a list without an image name")
	}
	err := r.readObject(func(key string) error {
		switch key {
		case "SchemaVersion":
			trivy = true
			return r.readSchemaVersion()
		case "ArtifactName":
			return r.readName(out)
		case "Metadata":
			return r.readObject(func(key string) error {
				if key == "RepoDigests" {
					return r.readDigests(out)
				}
				return r.dec.SkipValue()
			})
		case "Results":
			return r.readList(func() error { return r.readTrivyResult(out) })
		case "matches":
			grype = true
			return r.readList(func() error { return r.readGrypeMatch(out) })
		case "source":
			return r.readObject(func(key string) error { return r.readGrypeSource(key, out) })
		default:
			return r.dec.SkipValue()
		}
	})
	if err == nil && trivy == grype {
		return diag.Errorf(diag.Pos{File: r.file}, "neither a report of 'trivy image --format json' (SchemaVersion), nor of 'grype --output json' (matches)")
	}
	return err
}

// readSchemaVersion reads the version of Trivy's format. An unsupported version is an error.
func (r *reader) readSchemaVersion() error {
	from := r.nextOffset()
	value, err := r.dec.ReadValue()
	if err == nil && string(value) != "2" {
		return r.errorAt(from, "unsupported SchemaVersion %s of Trivy: must be 2", sanitize.Truncate(string(value), 20))
	}
	return err
}

// readName reads the name of the scanned image. It adds a digest in the name to the digests.
func (r *reader) readName(out *imageScan) error {
	err := r.readText(&out.name)
	if d := imageref.DigestIn(out.name); err == nil && imageref.IsDigest(d) {
		out.addDigest(d)
	}
	return err
}

// readDigests reads a list of image references, and adds their digests.
func (r *reader) readDigests(out *imageScan) error {
	return r.readList(func() error {
		from := r.nextOffset()
		var ref string
		if err := r.readText(&ref); err != nil {
			return err
		}
		d := imageref.DigestIn(ref)
		if !imageref.IsDigest(d) {
			return r.errorAt(from, "%q has no digest such as app@sha256:…", sanitize.Truncate(ref, 200))
		}
		if out.name == "" {
			out.name = ref
		}
		if out.addDigest(d); len(out.digests) > maxNames {
			return r.errorAt(from, "more than %d digests of one image", maxNames)
		}
		return nil
	})
}

// addDigest adds a digest of the scanned image, unless s already has it.
func (s *imageScan) addDigest(d string) {
	for _, existing := range s.digests {
		if existing == d {
			return
		}
	}
	s.digests = append(s.digests, d)
}

// addVulnerability adds v to out. from is the offset of its ID, for errors.
func (r *reader) addVulnerability(out *imageScan, from int, v Vulnerability) error {
	if !vulnerabilityID().MatchString(v.ID) {
		return r.errorAt(from, "%q is not a vulnerability ID such as CVE-2026-1234", sanitize.Truncate(v.ID, 100))
	}
	if v.Package == "" {
		return r.errorAt(from, "%s: package name is missing", v.ID)
	}
	if *r.remaining--; *r.remaining < 0 {
		return r.errorAt(from, "more than %d vulnerabilities", maxFound)
	}
	out.found = append(out.found, v)
	return nil
}

var vulnerabilityID = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once, and only if scans are read
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$`)
})

// readObject calls do with the name of each field of the next JSON object. do must read the value.
// null counts as an empty object.
func (r *reader) readObject(do func(key string) error) error {
	return r.readMembers('{', '}', "an object", func() error {
		key, err := r.dec.ReadToken()
		if err != nil {
			return err
		}
		return do(key.String())
	})
}

// readList calls do for each item of the next JSON array. do must read the item. null counts as an
// empty array.
func (r *reader) readList(do func() error) error { return r.readMembers('[', ']', "a list", do) }

// readMembers calls do for each member of the next JSON value. The delimiters of the value are from and to.
// expected is the type of the value for errors.
func (r *reader) readMembers(from, to jsontext.Kind, expected string, do func() error) error {
	switch kind := r.dec.PeekKind(); {
	case kind == 'n':
		return r.dec.SkipValue()
	case kind == 0: // malformed JSON: ReadToken returns the error
	case kind != from:
		return r.errorAt(r.nextOffset(), "expected %s", expected)
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

// readText reads the next string, truncated to maxText bytes. null counts as "".
func (r *reader) readText(into *string) error {
	switch kind := r.dec.PeekKind(); kind {
	case 'n':
		return r.dec.SkipValue()
	case '"', 0:
	default:
		return r.errorAt(r.nextOffset(), "expected a string")
	}
	token, err := r.dec.ReadToken()
	if err == nil {
		*into = sanitize.Truncate(token.String(), maxText)
	}
	return err
}

// readSeverity reads the next string as a severity.
func (r *reader) readSeverity(into *Severity) error {
	from := r.nextOffset()
	var word string
	if err := r.readText(&word); err != nil {
		return err
	}
	s, err := ParseSeverity(word)
	if err != nil {
		return r.errorAt(from, "%w", err)
	}
	*into = s
	return nil
}

// readLink reads the next string as a URL. If the scheme is neither http nor https, it stores "" in *into.
func (r *reader) readLink(into *string) error {
	var text string
	err := r.readText(&text)
	*into = sanitize.URL(text)
	return err
}

// readTitle reads the first line of the next string.
func (r *reader) readTitle(into *string) error {
	var text string
	err := r.readText(&text)
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	*into = sanitize.TruncateLine(first, 200)
	return err
}
