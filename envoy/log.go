package envoy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"xdspub/internal/safefile"
)

// maxLog is how much of a log is read at most: the end of it, where there is more.
const maxLog = 4 << 20

// Log is the file that an Envoy logs to: what its stderr is sent to, or the one of
// --log-path, to which it writes every 10 s unless --file-flush-interval-msec says
// otherwise. A Log is not to be used by several goroutines.
type Log struct {
	path string
	info fs.FileInfo // of the file at the mark; nil: there was none
}

// NewLog returns the Log of a file, which may be missing. It does not open the file yet.
func NewLog(path string) *Log { return &Log{path: path} }

// Mark remembers where the file ends, before files are renamed.
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

// Refusals returns those that were logged since the mark. A file that was rotated or
// cut off since is read from its beginning.
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
