package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Limits of the files of a chart. The largest of 192 measured charts has 1,500 files with 12 MB.
const (
	maxFiles   = 20_000
	maxBytes   = 48 << 20
	maxDepth   = 20   // directories in a path
	maxName    = 1000 // bytes of a path
	maxRatio   = 200  // largest ratio of unpacked to packed bytes; checked above ratioFloor
	ratioFloor = 8 << 20
)

// ReadArchive returns the files of a chart in a .tgz archive, by path below the directory of the
// chart, such as "Chart.yaml". It does not unpack archives of subcharts. An archive that exceeds a limit, or
// that has links, devices, absolute paths or paths that leave the directory, is an error.
func ReadArchive(r io.Reader) (map[string][]byte, error) {
	packed := &countingReader{r: r}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("reading chart archive: %w", err)
	}
	c := &collector{files: map[string][]byte{}, packed: packed}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading chart archive: %w", err)
		}
		if err := c.addEntry(h, t); err != nil {
			return nil, fmt.Errorf("reading chart archive: %w", err)
		}
	}
	if _, ok := c.files[metadataFile]; !ok {
		return nil, errors.New("chart archive has no Chart.yaml in its top directory")
	}
	return c.files, nil
}

// ReadDirectory returns the files of a chart in the root directory of fsys, like [ReadArchive]. It omits
// files that .helmignore lists. A link is an error, unless fsys itself resolves
// links.
func ReadDirectory(fsys fs.FS) (map[string][]byte, error) {
	ignored, err := readIgnoreFile(fsys)
	if err != nil {
		return nil, err
	}
	c := &collector{files: map[string][]byte{}}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case ignored.match(name, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		f, err := fsys.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return c.add(name, f)
	})
	if err != nil {
		return nil, fmt.Errorf("reading chart directory: %w", err)
	}
	if _, ok := c.files[metadataFile]; !ok {
		return nil, errors.New("chart directory has no Chart.yaml")
	}
	return c.files, nil
}

// collector collects the files of a chart up to the limits.
type collector struct {
	files   map[string][]byte
	entries int
	bytes   int64
	packed  *countingReader // nil if there is no archive
	top     string          // name of the archive's top directory
}

func (c *collector) addEntry(h *tar.Header, content io.Reader) error {
	if c.entries++; c.entries > 2*maxFiles {
		return fmt.Errorf("more than %d entries", 2*maxFiles)
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir, tar.TypeReg:
	default:
		return fmt.Errorf("%q is not a regular file or directory", h.Name)
	}
	name := strings.TrimPrefix(strings.ReplaceAll(h.Name, `\`, "/"), "./")
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	if !fs.ValidPath(name) || strings.Contains(name, ":") {
		return fmt.Errorf("%q is not a path within the chart", h.Name)
	}
	top, rest, below := strings.Cut(name, "/")
	if h.Typeflag == tar.TypeDir {
		return nil
	}
	if !below {
		return fmt.Errorf("%q is not in the directory of the chart", h.Name)
	}
	if c.top == "" {
		c.top = top
	}
	if top != c.top {
		return fmt.Errorf("two top directories: %q and %q", c.top, top)
	}
	return c.add(rest, content)
}

// add adds the content of a file.
func (c *collector) add(name string, content io.Reader) error {
	switch {
	case len(c.files) >= maxFiles:
		return fmt.Errorf("more than %d files", maxFiles)
	case len(name) > maxName || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("the path of %.80q is too long or has more than %d directories", name, maxDepth)
	}
	if _, ok := c.files[name]; ok {
		return fmt.Errorf("%q occurs twice", name)
	}
	left := maxBytes - c.bytes
	if c.packed != nil {
		left = min(left, max(ratioFloor, maxRatio*c.packed.n)-c.bytes)
	}
	data, err := io.ReadAll(io.LimitReader(content, left+1))
	if err != nil {
		return err
	}
	if c.bytes += int64(len(data)); int64(len(data)) > left {
		if c.bytes <= maxBytes {
			return fmt.Errorf("suspicious compression ratio: more than %d", maxRatio)
		}
		return fmt.Errorf("more than %d MiB", maxBytes>>20)
	}
	c.files[name] = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	return nil
}

// countingReader counts the bytes that were read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ignoreRules are the rules of a .helmignore file and Helm's own rule that ignores hidden templates.
type ignoreRules []string

func readIgnoreFile(fsys fs.FS) (ignoreRules, error) {
	rules := ignoreRules{"templates/.?*"}
	data, err := fs.ReadFile(fsys, ".helmignore")
	if errors.Is(err, fs.ErrNotExist) {
		return rules, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading .helmignore: %w", err)
	}
	var own ignoreRules
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := path.Match(line, "abc"); err != nil || strings.Contains(line, "**") {
			return nil, fmt.Errorf("reading .helmignore: unsupported pattern %q", line)
		}
		own = append(own, line)
	}
	return append(own, rules...), nil
}

// match reports whether a file or directory is ignored. As in Helm, the first rule that applies decides. A
// rule that begins with "!" ignores every file that its pattern does not match.
func (rules ignoreRules) match(name string, isDir bool) bool {
	for _, rule := range rules {
		rule, negated := strings.CutPrefix(rule, "!")
		rule, onlyDir := strings.CutSuffix(rule, "/")
		subject := path.Base(name)
		if anchored, ok := strings.CutPrefix(rule, "/"); ok {
			rule, subject = anchored, name
		} else if strings.Contains(rule, "/") {
			subject = name
		}
		if onlyDir && !isDir {
			if negated {
				return true
			}
			continue
		}
		if ok, err := path.Match(rule, subject); err == nil && ok != negated {
			return true
		}
	}
	return false
}
