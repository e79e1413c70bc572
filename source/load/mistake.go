package load

import (
	"fmt"
	"unicode/utf8"

	"xdspub/diag"
)

// mistake is what is wrong in a text that can't be parsed, and what would be right.
type mistake struct {
	at            span
	message, help string
	// isForeign says that the text belongs to another program.
	isForeign bool
	// other is a place that the message speaks of, and says what stands there; it may be nil.
	other *otherPlace
}

type otherPlace struct {
	at   span
	says string
}

// finding is the mistake as one.
func (m mistake) finding(d *textDocument) diag.Diagnostic {
	code := codeSyntax
	if m.isForeign {
		code = codeUnknownDocument
	}
	f := d.source.finding(code, d.span(m.at), m.message, m.help)
	if m.other != nil {
		f.Related = []diag.Related{{Position: d.span(m.other.at).Position, Message: m.other.says}}
	}
	return f
}

// closesNothing is the mistake of a bracket that closes none that is open.
func closesNothing(at int, c byte) *mistake {
	return &mistake{at: span{at, at + 1}, message: fmt.Sprintf("this %c closes nothing", c), help: "remove it, or write the bracket that it closes"}
}

// notClosed is the mistake of an open bracket.
func notClosed(at int, c byte) *mistake {
	return &mistake{at: span{at, at + 1}, message: fmt.Sprintf("this %c is not closed", c), help: fmt.Sprintf("write %c behind its last entry", closing(c))}
}

// closesOther is the mistake of a bracket that closes another kind than the one that is open.
func closesOther(at int, c byte, openAt int, open byte) *mistake {
	return &mistake{at: span{at, at + 1}, message: fmt.Sprintf("%c does not close the open bracket, which needs %c", c, closing(open)),
		help: fmt.Sprintf("write %c: it closes the bracket", closing(open)), other: &otherPlace{span{openAt, openAt + 1}, "the bracket opens here"}}
}

// missingComma is the mistake of two entries without a comma between them.
func missingComma(end int) *mistake {
	return &mistake{at: span{end, end}, message: "a comma is missing between two entries", help: "write a comma here"}
}

// copied is the mistake of a character that programs for prose put instead of another.
func copied(at span, message, help string) *mistake {
	return &mistake{at: at, message: message, help: help + ": the text was copied from a page or a word processor"}
}

// proseQuote is the mistake of a quote of prose.
func proseQuote(at span, r rune, format string) *mistake {
	return copied(at, fmt.Sprintf("%c is not a quote in %s", r, format), `write " in its place`)
}

const tooDeepHelp = "Envoy rejects what is nested more than 100 deep"

// shorten cuts a text that someone put in place of a word.
func shorten(text string) string {
	const limit = 200
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}

// curlyQuotes are those of word processors.
const curlyQuotes = "“”„‘’«»"
