package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolFile is the type of the temporary file of a spool.
type spoolFile = *os.File

func tempFile() (spoolFile, error) { return os.CreateTemp("", "quayside-files-") }

// spool stores the contents of files one after another: in memory or, if they are large, in one
// temporary file.
type spool struct {
	memory int64 // maximum bytes in memory
	temp   func() (spoolFile, error)
	buf    bytes.Buffer // the content that is not in the file
	file   spoolFile
	size   int64
}

const spoolBlock = 1 << 20

func newSpool(memory int64, temp func() (spoolFile, error)) *spool {
	return &spool{memory: memory, temp: temp}
}

// append adds n bytes of r and returns their offset in the spool.
func (s *spool) append(r io.Reader, n int64) (int64, error) {
	off := s.size
	for left := n; left > 0; {
		part := min(left, spoolBlock)
		if _, err := io.CopyN(&s.buf, r, part); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		left -= part
		s.size += part
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	return off, nil
}

// spill moves the buffered content to the file if it exceeds the memory limit.
func (s *spool) spill() error {
	if s.file == nil {
		if int64(s.buf.Len()) <= s.memory {
			return nil
		}
		f, err := s.temp()
		if err != nil {
			return err
		}
		s.file = f
		return s.flush()
	}
	if s.buf.Len() < spoolBlock {
		return nil
	}
	return s.flush()
}

// flush writes the buffered content to the temporary file, if there is one. It must be called before ReadAt.
func (s *spool) flush() error {
	if s.file == nil {
		return nil
	}
	if _, err := s.buf.WriteTo(s.file); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	if s.buf.Cap() > 2*spoolBlock {
		s.buf = bytes.Buffer{}
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	data := s.buf.Bytes()
	if off < 0 || off >= int64(len(data)) {
		return 0, io.EOF
	}
	n := copy(p, data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (s *spool) close() error {
	s.buf = bytes.Buffer{}
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
