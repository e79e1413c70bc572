package load

import (
	"os"

	"xdspub/diag"
	"xdspub/internal/safefile"
	"xdspub/source/decode"
	"xdspub/source/syntax"
)

// file is the content of a file of a tree at its last read. A file is immutable except for its stamps, which only the
// Loader reads.
type file struct {
	*decode.File
	found  entry
	stamp  safefile.Stamp
	unread bool // findings say why
}

// errors counts the findings that are errors.
func (f *file) errors() int { return f.Diagnostics().Count(diag.Error) }

// isOther reports whether the file was looked at only.
func (f *file) isOther() bool {
	return f.Source.Format == syntax.Other && !f.found.isOutside && f.found.unreadable == nil
}

// size is the Size of the File; 0 for a file that was looked at only, and for none.
func (f *file) size() int64 {
	if f == nil || f.isOther() {
		return 0
	}
	return f.Size()
}

// count is 1 for a resource file, 0 for a settings file, one that was looked at only, and for none.
func (f *file) count() int {
	if f == nil || f.isOther() || f.found.isSettings {
		return 0
	}
	return 1
}

// isCurrent reports whether the file, and the files inlined into its resources, are certainly unchanged. The
// file system's metadata mostly suffice for the answer.
func (f *file) isCurrent(t *tree) bool {
	if f.unread || !f.stamp.Settled() {
		return false
	}
	stat := os.Lstat
	if f.found.linked {
		stat = t.stat
	}
	info, err := stat(f.Source.Name)
	return err == nil && f.stamp.Holds(info) && f.upToDate(t)
}

// upToDate reports whether the inlined files are unchanged.
func (f *file) upToDate(t *tree) bool {
	for i := range f.Inlined {
		info, err := t.stat(f.Inlined[i].Path)
		if err != nil {
			info = nil
		}
		if !f.Inlined[i].Unchanged(t, info) {
			return false
		}
	}
	return true
}
