package syntax

import (
	"fmt"
	"unicode/utf8"

	"xdspub/diag"
)

// mistake is a fault that keeps a text from being parsed, with the remedy.
type mistake struct {
	At            Span
	Message, Help string
	// isForeign says that the text belongs to another program.
	isForeign bool
	// other is a place that the message refers to, with a note; may be nil.
	other *otherPlace
}

type otherPlace struct {
	at   Span
	says string
}

// Finding is the mistake as one.
func (m mistake) Finding(d *Document) diag.Diagnostic {
	code := CodeSyntax
	if m.isForeign {
		code = CodeUnknownDocument
	}
	f := d.source.Finding(code, d.Span(m.At), m.Message, m.Help)
	if m.other != nil {
		f.Related = []diag.Related{{Position: d.Span(m.other.at).Position, Message: m.other.says}}
	}
	return f
}

// closesNothing returns the mistake of a closing bracket without an open bracket.
func closesNothing(at int, c byte) *mistake {
	return &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("this %c closes nothing", c), Help: "remove it, or write the bracket that it closes"}
}

// notClosed returns the mistake of an open bracket.
func notClosed(at int, c byte) *mistake {
	return &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("this %c is not closed", c), Help: fmt.Sprintf("write %c behind its last entry", closing(c))}
}

// closesOther returns the mistake of a closing bracket of another kind than the open bracket.
func closesOther(at int, c byte, openAt int, open byte) *mistake {
	return &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("%c does not close the open bracket, which needs %c", c, closing(open)),
		Help: fmt.Sprintf("write %c: it closes the bracket", closing(open)), other: &otherPlace{Span{openAt, openAt + 1}, "the bracket opens here"}}
}

// missingComma is the mistake of two entries without a comma between them.
func missingComma(end int) *mistake {
	return &mistake{At: Span{end, end}, Message: "a comma is missing between two entries", Help: "write a comma here"}
}

// copied is the mistake of a character that programs for prose put instead of another.
func copied(at Span, message, help string) *mistake {
	return &mistake{At: at, Message: message, Help: help + ": the text was copied from a page or a word processor"}
}

// proseQuote is the mistake of a quote of prose.
func proseQuote(at Span, r rune, format string) *mistake {
	return copied(at, fmt.Sprintf("%c is not a quote in %s", r, format), `write " in its place`)
}

// TooDeepHelp is Envoy's reaction to a text with too many levels.
const TooDeepHelp = "Envoy rejects what is nested more than 100 deep"

// Shorten cuts a text that someone put in place of a word.
func Shorten(text string) string {
	const limit = 200
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}

// CurlyQuotes are those of word processors.
const CurlyQuotes = "“”„‘’«»"
