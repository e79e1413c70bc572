package syntax

import (
	"fmt"
	"strings"
)

// TextMistake returns the mistake at an offset of a text that is no text proto; reason is the parser's reason.
func TextMistake(d *Document, offset int, reason string) *mistake {
	offset = min(offset, len(d.Text))
	end := offset + lineLength(d.Text[offset:])
	if m := notYetText(d.Text, end); m != nil {
		return m
	}
	if m := d.ForeignText(); m != nil {
		return m
	}
	s := scanBrackets(d.Text, offset, true)
	if s.inText >= 0 {
		return &mistake{At: Span{s.inText, s.inText + 1}, Message: "the quote is not closed " +
			"on this line", Help: fmt.Sprintf("write %c at the end of the text", d.Text[s.inText])}
	}
	if offset == len(d.Text) || strings.Contains(reason, "EOF") {
		return s.unclosed()
	}
	if s.odd != nil {
		return s.odd
	}
	here := Span{offset, offset + 1}
	if strings.Contains(reason, "escape") {
		return &mistake{At: here, Message: "a backslash in the text does not begin an escape", Help: `double it: \\`}
	}
	switch c := d.Text[offset]; {
	case c == '}' || c == ']' || c == '>':
		return s.wrongBracket(offset)
	case strings.HasPrefix(string(d.Text[offset:]), `"@type"`):
		return &mistake{At: Span{offset, offset + len(`"@type"`)}, Message: "a text proto writes the type of an Any " +
			"in another way", Help: "write [type.googleapis.com/…] { … }"}
	case (c == '"' || c == '\'') && closesQuote(d.Text[offset:end], endOfQuoted(d.Text[offset:end], 0)) || c != '"' && c != '\'':
	default:
		return &mistake{At: here, Message: "the quote is not closed on this line", Help: fmt.Sprintf("write %c at the end of the text", c)}
	}
	switch c := d.Text[offset]; {
	case c == '"' || c == '\'':
		return &mistake{At: here, Message: "a quoted text is not a field name", Help: "write the name without quotes"}
	case c == '-':
		return &mistake{At: here, Message: "a text proto has no dashes for the " +
			"entries of a list", Help: "write the field once for each entry, or name: [ …, … ]"}
	case c == '=':
		return &mistake{At: here, Message: "a text proto needs a colon here, not =", Help: "write name: value"}
	case c == '{' || c == '[' || c == '<':
		return &mistake{At: here, Message: "a bracket is not a field name", Help: "write name { … }"}
	}
	return &mistake{At: here, Message: "a text proto needs a field here", Help: "write name: value, or name { … }"}
}
