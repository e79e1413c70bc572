package envoy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"xdspub/internal/safefile"
)

// maxLog bounds the part of a log that Refusals reads. Of a longer log, Refusals reads the end.
const maxLog = 4 << 20

// Log is the file that an Envoy logs to: the target of its stderr, or the file of --log-path, to which Envoy
// writes every 10 s unless --file-flush-interval-msec differs. Not for concurrent use.
type Log struct {
	path string
	info fs.FileInfo // of the file at Mark; nil if there was no file
}

// NewLog returns the Log of a file, which may be missing. NewLog does not open the file.
func NewLog(path string) *Log { return &Log{path: path} }

// Mark remembers the end of the file. Refusals begins there. A missing file is no error.
func (l *Log) Mark() error {
	info, err := os.Stat(l.path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("log of Envoy: %w", err)
	case err == nil && !info.Mode().IsRegular(): // opening a pipe may take for ever
		return fmt.Errorf("log of Envoy: %s: not a regular file", l.path)
	}
	l.info = info
	return nil
}

// Refusals returns the refusals logged since Mark, or none if the file is missing. Refusals reads a rotated or
// truncated file from its beginning.
func (l *Log) Refusals() ([]Refusal, error) {
	f, info, err := safefile.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log of Envoy: %w", err)
	}
	defer f.Close()
	var from int64
	if l.info != nil && os.SameFile(l.info, info) && l.info.Size() <= info.Size() {
		from = l.info.Size()
	}
	from = max(from, info.Size()-maxLog)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return nil, fmt.Errorf("log of Envoy: %w", err)
	}
	return ParseLog(string(text)), nil
}
