package load

import (
	"fmt"
	"strings"
)

// textMistake is what is wrong at an offset where a text is no text proto; reason is what the
// parser says.
func (d *textDocument) textMistake(offset int, reason string) *mistake {
	offset = min(offset, len(d.text))
	end := offset + lineLength(d.text[offset:])
	if m := notYetText(d.text, end); m != nil {
		return m
	}
	if m := d.foreignText(); m != nil {
		return m
	}
	s := scanBrackets(d.text, offset, true)
	if s.inText >= 0 {
		return &mistake{at: span{s.inText, s.inText + 1}, message: "the quote is not closed on this line", help: fmt.Sprintf("write %c at the end of the text", d.text[s.inText])}
	}
	if offset == len(d.text) || strings.Contains(reason, "EOF") {
		return s.unclosed()
	}
	if s.odd != nil {
		return s.odd
	}
	here := span{offset, offset + 1}
	if strings.Contains(reason, "escape") {
		return &mistake{at: here, message: "a backslash in the text does not begin an escape", help: `double it: \\`}
	}
	switch c := d.text[offset]; {
	case c == '}' || c == ']' || c == '>':
		return s.wrongBracket(offset)
	case strings.HasPrefix(string(d.text[offset:]), `"@type"`):
		return &mistake{at: span{offset, offset + len(`"@type"`)}, message: "a text proto writes the type of an Any in another way", help: "write [type.googleapis.com/…] { … }"}
	case (c == '"' || c == '\'') && closesQuote(d.text[offset:end], endOfQuoted(d.text[offset:end], 0)) || c != '"' && c != '\'':
	default:
		return &mistake{at: here, message: "the quote is not closed on this line", help: fmt.Sprintf("write %c at the end of the text", c)}
	}
	switch c := d.text[offset]; {
	case c == '"' || c == '\'':
		return &mistake{at: here, message: "a quoted text is not a field name", help: "write the name without quotes"}
	case c == '-':
		return &mistake{at: here, message: "a text proto has no dashes for the entries of a list", help: "write the field once for each entry, or name: [ …, … ]"}
	case c == '=':
		return &mistake{at: here, message: "a text proto needs a colon here, not =", help: "write name: value"}
	case c == '{' || c == '[' || c == '<':
		return &mistake{at: here, message: "a bracket is not a field name", help: "write name { … }"}
	}
	return &mistake{at: here, message: "a text proto needs a field here", help: "write name: value, or name { … }"}
}
