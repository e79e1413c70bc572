package diag

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TextOptions are the options of WriteText.
type TextOptions struct {
	// Line returns the source line at a position, without its line break. ok is false if the line is unknown. If
	// Line is nil, WriteText prints no source lines.
	Line func(Position) (string, bool)
	// Color marks severities and carets with ANSI colours.
	Color bool
}

const (
	ansiReset  = "\x1b[0m"
	ansiBold   = "\x1b[1m"
	ansiRed    = "\x1b[31m"
	ansiYellow = "\x1b[33m"
	ansiBlue   = "\x1b[34m"
)

// WriteText prints each finding as
//
//	file:line:col: error: message [rule-code]
//
// then the source line with a caret under the column, then related places and
// the help. Control characters of the source are never passed on.
func WriteText(w io.Writer, l List, o TextOptions) error {
	bw := bufio.NewWriter(w)
	paint := func(color, s string) string {
		if !o.Color || s == "" {
			return s
		}
		return color + s + ansiReset
	}
	var s snippets
	for _, d := range l {
		d = d.Shown()
		fmt.Fprintf(bw, "%s%s: %s [%s]\n", paint(ansiBold, place(d.Position)),
			paint(severityColor(d.Severity), d.Severity.String()), Printable(d.Message), d.Code)
		s.write(bw, d, o, paint)
		if in := inside(d); in != "" {
			fmt.Fprintf(bw, "    in %s\n", Printable(in))
		}
		for _, r := range d.Related {
			fmt.Fprintf(bw, "    %s%s\n", place(r.Position), Printable(r.Message))
		}
		if d.Help != "" {
			fmt.Fprintf(bw, "    help: %s\n", Printable(d.Help))
		}
	}
	return bw.Flush()
}

// Text returns the n most important findings as WriteText prints them; all findings if n is 0.
func (l List) Text(n int, o TextOptions) string {
	most, _ := l.Most(n)
	var b strings.Builder
	_ = WriteText(&b, most, o) // a Builder has no errors
	return b.String()
}

// inside returns the resource and the field of a finding without a line, as in a binary file. It returns "" for a
// finding with a line.
func inside(d Diagnostic) string {
	switch {
	case d.Line > 0 || d.Path == "" && d.Resource.Name == "":
		return ""
	case d.Path == "":
		return strconv.Quote(d.Resource.Name)
	case d.Resource.Name == "":
		return d.Path
	default:
		return fmt.Sprintf("%q, %s", d.Resource.Name, d.Path)
	}
}

// place returns the beginning of a line about a position.
func place(p Position) string {
	if p == (Position{}) {
		return ""
	}
	return Printable(p.String()) + ": "
}

// snippetWidth is the largest number of characters that are printed of a source line, because minified JSON has
// lines of megabytes.
const snippetWidth = 120

// snippets prints source lines. It remembers its place in the current line, so that thousands of sorted findings on
// a long line need only one walk through the line.
type snippets struct {
	line         Position
	runes, bytes int

	judged Position // the line that secret is about
	secret bool     // the line must not be shown
}

// reveals returns reveals(line), and caches the answer for the current line.
func (s *snippets) reveals(p Position, line string) bool {
	if here := (Position{File: p.File, Line: p.Line}); s.judged != here {
		s.judged, s.secret = here, reveals(line)
	}
	return s.secret
}

func (s *snippets) write(w io.Writer, d Diagnostic, o TextOptions, paint func(string, string) string) {
	if o.Line == nil || d.Line == 0 || d.Column == 0 {
		return
	}
	line, ok := o.Line(d.Position)
	if d.Sensitive || ok && s.reveals(d.Position, line) {
		fmt.Fprintln(w, "    (the line is not shown: it may hold a secret)")
		return
	}
	if !ok || strings.TrimSpace(line) == "" {
		return
	}
	caret := d.Column - 1
	from := 0
	if caret > snippetWidth-20 {
		from = caret - snippetWidth/2
	}
	here := Position{File: d.File, Line: d.Line}
	if s.line != here || s.runes > from || s.bytes > len(line) {
		s.line, s.runes, s.bytes = here, 0, 0
	}
	for s.runes < from && s.bytes < len(line) {
		_, size := utf8.DecodeRuneInString(line[s.bytes:])
		s.runes++
		s.bytes += size
	}
	if s.runes < from { // the file has changed since it was judged
		return
	}
	rest := line[s.bytes:]
	window := []rune(rest[:min(len(rest), snippetWidth*utf8.UTFMax)])
	window = window[:min(len(window), snippetWidth)]
	text := Printable(strings.ReplaceAll(string(window), "\t", " "))
	fmt.Fprintf(w, "    %s\n    %s%s\n", text, strings.Repeat(" ", min(caret-from, len(window))), paint(ansiBlue, "^"))
}

func severityColor(s Severity) string {
	switch s {
	case Error:
		return ansiRed
	case Warning:
		return ansiYellow
	default:
		return ansiBlue
	}
}

// Printable replaces each character that a terminal would obey or can't show by one replacement character, so
// columns do not change.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // also characters that change the direction of text
			return utf8.RuneError
		}
		return r
	}, s)
}
