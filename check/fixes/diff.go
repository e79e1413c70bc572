package fixes

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"xdspub/diag"
	"xdspub/internal/fspath"
	"xdspub/source/decode"
	"xdspub/source/syntax"
)

// Diff writes the fixes as a unified diff, which git apply and patch -p1 read. A line that may hold a secret is shown
// as …; hidden is true for a diff with such a line.
func (r *Run) Diff(w io.Writer) (hidden bool, err error) {
	for _, f := range r.changed() {
		name := diag.Printable(f.shownName())
		text := diff.Diff(path.Join("a", name), f.before, path.Join("b", name), f.now)
		shown, hid := f.shown(text)
		hidden = hidden || hid
		if _, err := w.Write(shown); err != nil {
			return hidden, err
		}
	}
	return hidden, nil
}

// shownName returns the path of the file without links: relative to the current folder if the file is below it.
func (f *file) shownName() string {
	if !f.onDisk() {
		return filepath.ToSlash(f.name)
	}
	real := filepath.Join(f.root.Name(), f.below)
	if below, err := filepath.Rel(fspath.Resolve("."), real); err == nil && filepath.IsLocal(below) {
		real = below
	}
	return filepath.ToSlash(real)
}

// shown returns a diff without the lines that must not be shown.
func (f *file) shown(text []byte) (shown []byte, hidden bool) {
	visible := f.visible()
	var out bytes.Buffer
	n := 0
	for line := range bytes.Lines(text) {
		if n++; n <= 3 || line[0] == '@' || line[0] == '\\' { // the head, or the head of a hunk
			out.Write(line)
			continue
		}
		content := string(line[1:])
		is := visible(content)
		if !is {
			content = "…\n"
		} else if plain := strings.Map(replaceControl, content); plain != content {
			content, is = plain, false
		}
		hidden = hidden || !is
		fmt.Fprintf(&out, "%c%s", line[0], content)
	}
	return out.Bytes(), hidden
}

// visible returns a function that reports whether a line of the texts before and after may be shown.
func (f *file) visible() func(line string) bool {
	o := decode.SourceOptions{Envoy: f.envoy}
	before := decode.Visible(decode.NewSource(f.name, syntax.YAML, f.before, o))
	now := decode.Visible(decode.NewSource(f.name, syntax.YAML, f.now, o))
	return func(line string) bool { return before(line) && now(line) }
}

// replaceControl replaces the characters that a terminal would obey. A tab, the end of a line and a byte order mark
// stay, because the diff would not apply without them.
func replaceControl(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || r == '\ufeff':
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return utf8.RuneError
	}
	return r
}
