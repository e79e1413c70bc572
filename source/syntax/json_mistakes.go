package syntax

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonMistake returns the mistake at an offset of a text that is no JSON; reason is the parser's reason.
func (d jsonDocument) jsonMistake(offset int, reason string) *mistake {
	if strings.Contains(reason, "max depth") {
		return &mistake{At: Span{offset, offset}, Message: "the file is nested too deeply", Help: TooDeepHelp}
	}
	lineEnd := offset + lineLength(d.Text[min(offset, len(d.Text)):])
	if m := notYetText(d.Text, lineEnd); m != nil {
		return m
	}
	if m := d.ForeignText(); m != nil {
		return m
	}
	s := scanBrackets(d.Text, offset, false)
	if strings.Contains(reason, "EOF") || offset >= len(d.Text) {
		return s.unclosed()
	}
	if s.inText >= 0 {
		return d.inJSONText(s, offset, reason)
	}
	r, size := utf8.DecodeRune(d.Text[offset:])
	here := Span{offset, offset + size}
	next := bytes.TrimLeft(d.Text[offset+size:], JSONSpace)
	switch {
	case r == '/' || r == '#':
		help := "remove it"
		if !d.source.reader.OnlyJSON() {
			help += ", or write the file in YAML"
		}
		return &mistake{At: Span{offset, lineEnd}, Message: "JSON has no comments", Help: help}
	case r == '\'':
		return &mistake{At: here, Message: "the text is in single quotes", Help: `write " in their place`}
	case strings.ContainsRune(CurlyQuotes+"‘’", r):
		return proseQuote(here, r, "JSON")
	case r > unicode.MaxASCII && (unicode.IsSpace(r) || !unicode.IsPrint(r)):
		return copied(here, fmt.Sprintf("this character looks like a space but is not one: %U", r), "type the space again")
	case r == ',' && len(next) > 0 && (next[0] == '}' || next[0] == ']'):
		return &mistake{At: here, Message: "a comma follows the last entry", Help: "remove it"}
	case r == ',':
		return &mistake{At: here, Message: "a value is missing before this comma", Help: "write the value, or remove the comma"}
	case strings.Contains(reason, "expecting ':'"):
		return &mistake{At: Span{s.end, s.end}, Message: "a colon is missing behind the name", Help: `write "name": value`}
	case r == '}' || r == ']':
		return s.wrongBracket(offset)
	case strings.Contains(reason, "expecting ','"):
		return d.behindJSONValue(s, offset)
	}
	return d.badJSONValue(s, here, r)
}

// behindJSON is the mistake of what follows the end of the document.
func (d jsonDocument) behindJSON(offset int) *mistake {
	if m := notYetText(d.Text, offset+1); m != nil {
		return m
	}
	if m := d.ForeignText(); m != nil {
		return m
	}
	s := scanBrackets(d.Text, offset, false)
	if s.odd != nil {
		return s.odd
	}
	here := Span{offset, offset}
	switch c := d.Text[offset]; c {
	case '}', ']':
		return closesNothing(offset, c)
	case '{', '[':
		return &mistake{At: here, Message: "a second document follows the first", Help: "put both into one list, with brackets around and a comma between them"}
	}
	return &mistake{At: here, Message: "text follows the end of the document", Help: "remove it"}
}

// inJSONText is the mistake of a text in quotes.
func (d jsonDocument) inJSONText(s bracketScan, offset int, reason string) *mistake {
	switch c := d.Text[offset]; {
	case strings.Contains(reason, "surrogate"):
		return &mistake{At: Span{offset, offset}, Message: "the text has only half of a character that " +
			"needs two escapes", Help: "write both of its \\u…, or the character itself"}
	case c == '\n' || c == '\r':
		return &mistake{At: Span{s.inText, offset}, Message: "the quote is not closed " +
			"on this line", Help: `write " at the end of the text, or \n where the text has a line break`}
	case c == '\t':
		return &mistake{At: Span{offset, offset + 1}, Message: "the text contains a tab", Help: `write it as \t`}
	case c < ' ':
		return &mistake{At: Span{offset, offset + 1}, Message: "the text contains a control character", Help: fmt.Sprintf(`write it as \u%04x`, c)}
	}
	return &mistake{At: Span{offset, offset}, Message: "a backslash in the text does not begin an escape", Help: `double it: \\`}
}

// behindJSONValue is the mistake of what follows a value, and neither ends the list nor goes on.
func (d jsonDocument) behindJSONValue(s bracketScan, offset int) *mistake {
	c := d.Text[offset]
	between := d.Text[s.end:offset]
	switch {
	case len(between) > 0 && s.odd != nil:
		return s.odd
	case c == ':':
		return &mistake{At: Span{offset, offset + 1}, Message: "a colon follows a value", Help: "write a comma if another entry " +
			"begins; list entries have no names"}
	case len(between) == 0 && offset > 0 && IsDigit(d.Text[offset-1]):
		return &mistake{At: Span{s.last, offset + 1}, Message: "this is not a JSON number", Help: "write digits without a 0 in front; put text in quotes"}
	case len(between) == 0 && offset > 0 && d.Text[offset-1] == '"' && c != '"' && c != '{' && c != '[':
		return &mistake{At: Span{s.last, offset + 1}, Message: "text follows a closing quote", Help: `write \" for a quote within a text`}
	}
	return missingComma(s.end)
}

// badJSONValue is the mistake of a name or a value that begins with a wrong character.
func (d jsonDocument) badJSONValue(s bracketScan, here Span, r rune) *mistake {
	word := d.Text[here.From:]
	if end := bytes.IndexAny(word, " \t\r\n,:]}\""); end > 0 {
		word = word[:end]
	}
	here.To = here.From + len(word)
	m := &mistake{At: here}
	rest := bytes.TrimLeft(d.Text[here.To:], "\" \t")
	switch isName := len(rest) > 0 && rest[0] == ':'; {
	case isName && bytes.HasPrefix(d.Text[here.To:], []byte(`"`)):
		m.Message, m.Help = "the name has no quote in front", `write " in front of it`
	case isName:
		m.Message, m.Help = "the name has no quotes", `write "name": value`
	case string(word) == "True" || string(word) == "False":
		m.Message, m.Help = "JSON writes true and false in small letters", "write "+strings.ToLower(string(word))
	case string(word) == "None" || string(word) == "nil" || string(word) == "NULL" || string(word) == "undefined":
		m.Message, m.Help = "JSON has no such value", "write null, or remove the entry"
	case r == '+' || r == '.' || IsDigit(byte(r)) && r < utf8.RuneSelf:
		m.Message, m.Help = "this is not a JSON number", "write digits, without a + and with a digit in front of the point"
	case r == '{' || r == '[':
		m.Message, m.Help = "a name is wanted here", `write "name": value`
	default:
		m.Message, m.Help = "the text has no quotes", `put it in double quotes`
	}
	return m
}
