package diag

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// TextOptions say how WriteText prints.
type TextOptions struct {
	// Line returns the source line at a position, without its line break, and
	// whether it is known. Nil prints no source lines.
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
		if !o.Color {
			return s
		}
		return color + s + ansiReset
	}
	for _, d := range l {
		where := ""
		if d.Position != (Position{}) {
			where = printable(d.Position.String()) + ": "
		}
		fmt.Fprintf(bw, "%s%s: %s [%s]\n", paint(ansiBold, where), paint(severityColor(d.Severity), d.Severity.String()), printable(d.Message), d.Code)
		writeSnippet(bw, d, o, paint)
		for _, r := range d.Related {
			fmt.Fprintf(bw, "    %s: %s\n", printable(r.Position.String()), printable(r.Message))
		}
		if d.Help != "" {
			fmt.Fprintf(bw, "    help: %s\n", printable(d.Help))
		}
	}
	return bw.Flush()
}

// snippetWidth is how many characters of a source line are printed: minified
// JSON has lines of megabytes.
const snippetWidth = 120

func writeSnippet(w io.Writer, d Diagnostic, o TextOptions, paint func(string, string) string) {
	if o.Line == nil || d.Line == 0 || d.Column == 0 || d.Sensitive {
		return
	}
	line, ok := o.Line(d.Position)
	if !ok {
		return
	}
	runes := []rune(printable(strings.ReplaceAll(line, "\t", " ")))
	caret := min(d.Column-1, len(runes))
	from := 0
	if caret > snippetWidth-20 {
		from = caret - snippetWidth/2
	}
	to := min(len(runes), from+snippetWidth)
	fmt.Fprintf(w, "    %s\n    %s%s\n", string(runes[from:to]), strings.Repeat(" ", caret-from), paint(ansiBlue, "^"))
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

// printable replaces what a terminal would obey, or could not show, one
// character for one so that columns stay true.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return utf8.RuneError
		}
		return r
	}, s)
}
