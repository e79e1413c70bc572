package load

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonMistake is what is wrong at an offset where a text is no JSON; reason is what the parser
// says.
func (d *textDocument) jsonMistake(offset int, reason string) *mistake {
	if strings.Contains(reason, "max depth") {
		return &mistake{at: span{offset, offset}, message: "the file is nested too deeply", help: tooDeepHelp}
	}
	lineEnd := offset + lineLength(d.text[min(offset, len(d.text)):])
	if m := notYetText(d.text, lineEnd); m != nil {
		return m
	}
	if m := d.foreignText(); m != nil {
		return m
	}
	s := scanBrackets(d.text, offset, false)
	if strings.Contains(reason, "EOF") || offset >= len(d.text) {
		return s.unclosed()
	}
	if s.inText >= 0 {
		return d.inJSONText(s, offset, reason)
	}
	r, size := utf8.DecodeRune(d.text[offset:])
	here := span{offset, offset + size}
	next := bytes.TrimLeft(d.text[offset+size:], jsonSpace)
	switch {
	case r == '/' || r == '#':
		help := "remove it"
		if !d.source.reader.OnlyJSON() {
			help += ", or write the file in YAML"
		}
		return &mistake{at: span{offset, lineEnd}, message: "JSON has no comments", help: help}
	case r == '\'':
		return &mistake{at: here, message: "the text is in single quotes", help: `write " in their place`}
	case strings.ContainsRune(curlyQuotes+"‘’", r):
		return proseQuote(here, r, "JSON")
	case r > unicode.MaxASCII && (unicode.IsSpace(r) || !unicode.IsPrint(r)):
		return copied(here, fmt.Sprintf("this character looks like a space but is not one: %U", r), "type the space again")
	case r == ',' && len(next) > 0 && (next[0] == '}' || next[0] == ']'):
		return &mistake{at: here, message: "a comma follows the last entry", help: "remove it"}
	case r == ',':
		return &mistake{at: here, message: "a value is missing before this comma", help: "write the value, or remove the comma"}
	case strings.Contains(reason, "expecting ':'"):
		return &mistake{at: span{s.end, s.end}, message: "a colon is missing behind the name", help: `write "name": value`}
	case r == '}' || r == ']':
		return s.wrongBracket(offset)
	case strings.Contains(reason, "expecting ','"):
		return d.behindJSONValue(s, offset)
	}
	return d.badJSONValue(s, here, r)
}

// behindJSON is the mistake of what follows the end of the document.
func (d *textDocument) behindJSON(offset int) *mistake {
	if m := notYetText(d.text, offset+1); m != nil {
		return m
	}
	if m := d.foreignText(); m != nil {
		return m
	}
	s := scanBrackets(d.text, offset, false)
	if s.odd != nil {
		return s.odd
	}
	here := span{offset, offset}
	switch c := d.text[offset]; c {
	case '}', ']':
		return closesNothing(offset, c)
	case '{', '[':
		return &mistake{at: here, message: "a second document follows the first", help: "put both into one list, with brackets around and a comma between them"}
	}
	return &mistake{at: here, message: "text follows the end of the document", help: "remove it"}
}

// inJSONText is the mistake of a text in quotes.
func (d *textDocument) inJSONText(s bracketScan, offset int, reason string) *mistake {
	switch c := d.text[offset]; {
	case strings.Contains(reason, "surrogate"):
		return &mistake{at: span{offset, offset}, message: "the text has only half of a character that needs two escapes", help: "write both of its \\u…, or the character itself"}
	case c == '\n' || c == '\r':
		return &mistake{at: span{s.inText, offset}, message: "the quote is not closed on this line", help: `write " at the end of the text, or \n where the text has a line break`}
	case c == '\t':
		return &mistake{at: span{offset, offset + 1}, message: "the text contains a tab", help: `write it as \t`}
	case c < ' ':
		return &mistake{at: span{offset, offset + 1}, message: "the text contains a control character", help: fmt.Sprintf(`write it as \u%04x`, c)}
	}
	return &mistake{at: span{offset, offset}, message: "a backslash in the text does not begin an escape", help: `double it: \\`}
}

// behindJSONValue is the mistake of what follows a value, and neither ends the list nor goes on.
func (d *textDocument) behindJSONValue(s bracketScan, offset int) *mistake {
	c := d.text[offset]
	between := d.text[s.end:offset]
	switch {
	case len(between) > 0 && s.odd != nil:
		return s.odd
	case c == ':':
		return &mistake{at: span{offset, offset + 1}, message: "a colon follows a value", help: "write a comma if another entry begins; list entries have no names"}
	case len(between) == 0 && offset > 0 && isDigit(d.text[offset-1]):
		return &mistake{at: span{s.last, offset + 1}, message: "this is not a JSON number", help: "write digits without a 0 in front; put text in quotes"}
	case len(between) == 0 && offset > 0 && d.text[offset-1] == '"' && c != '"' && c != '{' && c != '[':
		return &mistake{at: span{s.last, offset + 1}, message: "text follows a closing quote", help: `write \" for a quote within a text`}
	}
	return missingComma(s.end)
}

// badJSONValue is the mistake of a name or a value that begins with a wrong character.
func (d *textDocument) badJSONValue(s bracketScan, here span, r rune) *mistake {
	word := d.text[here.from:]
	if end := bytes.IndexAny(word, " \t\r\n,:]}\""); end > 0 {
		word = word[:end]
	}
	here.to = here.from + len(word)
	m := &mistake{at: here}
	rest := bytes.TrimLeft(d.text[here.to:], "\" \t")
	switch isName := len(rest) > 0 && rest[0] == ':'; {
	case isName && bytes.HasPrefix(d.text[here.to:], []byte(`"`)):
		m.message, m.help = "the name has no quote in front", `write " in front of it`
	case isName:
		m.message, m.help = "the name has no quotes", `write "name": value`
	case string(word) == "True" || string(word) == "False":
		m.message, m.help = "JSON writes true and false in small letters", "write "+strings.ToLower(string(word))
	case string(word) == "None" || string(word) == "nil" || string(word) == "NULL" || string(word) == "undefined":
		m.message, m.help = "JSON has no such value", "write null, or remove the entry"
	case r == '+' || r == '.' || isDigit(byte(r)) && r < utf8.RuneSelf:
		m.message, m.help = "this is not a JSON number", "write digits, without a + and with a digit in front of the point"
	case r == '{' || r == '[':
		m.message, m.help = "a name is wanted here", `write "name": value`
	default:
		m.message, m.help = "the text has no quotes", `put it in double quotes`
	}
	return m
}
