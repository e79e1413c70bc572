package syntax

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// value reads what stands behind a key or a dash, and the lines that it goes on.
func (s *yamlSearch) value(at, end int) *mistake {
	at = end - len(bytes.TrimLeft(s.text[at:end], " \t"))
	top := s.top()
	if at == end || s.text[at] == '#' {
		if top != nil {
			top.empty = true
		}
		return nil
	}
	if m := s.badStart(at, end); m != nil {
		return m
	}
	if size := propertiesOf(s.text[at:end]); size > 0 {
		return s.value(at+size, end)
	}
	switch c := s.text[at]; {
	case c == '|' || c == '>':
		return s.lines(at, end)
	case c == '"' || c == '\'':
		return s.quoted(at, end)
	case c == '{' || c == '[':
		return s.brackets(at)
	case isItem(s.text[at:end]):
		return &mistake{At: Span{at, at + 1}, Message: "a list entry is on the line of its key", Help: "put the entry on a line of its own, below the key"}
	}
	return s.plain(at, end)
}

// column returns the column of the block around, or -1 outside of all blocks.
func (s *yamlSearch) column() int {
	if top := s.top(); top != nil {
		return top.column
	}
	return -1
}

var (
	alias       = regexp.MustCompile(`^\*[\w-]+\s*(?:$|[,\]}#]|:\s)`)
	anchor      = regexp.MustCompile(`^&[\w-]`)
	namedTag    = regexp.MustCompile(`^![\w-]+!`)
	blockHeader = regexp.MustCompile(`^[|>][-+0-9]*\s*(?:#.*)?$`)
)

// badStart is the mistake of a key or value without quotes that begins with a character that
// YAML keeps for itself.
func (s *yamlSearch) badStart(at, end int) *mistake {
	rest := s.text[at:end]
	switch c := rest[0]; {
	case c == '@' && bytes.HasPrefix(rest, []byte("@type")):
		return &mistake{At: Span{at, at + len("@type")}, Message: `the key @type begins with an @`, Help: `put it in quotes: "@type"`}
	case c == '@' || c == '`' || c == '%':
		return s.withoutQuotes(at, rest, fmt.Sprintf("text that begins with %c has no quotes", c))
	case c == '*' && !alias.Match(rest):
		return s.withoutQuotes(at, rest, "text that begins with * has no quotes: YAML takes it for an alias")
	case c == '&' && !anchor.Match(rest):
		return s.withoutQuotes(at, rest, "text that begins with & has no quotes: YAML takes it for an anchor")
	case c == '!' && namedTag.Match(rest):
		return s.withoutQuotes(at, rest, "text that begins with ! has no quotes: YAML takes it for a tag")
	case c == ',' || c == ']' || c == '}':
		return &mistake{At: Span{at, at + 1}, Message: fmt.Sprintf("a value begins with %c", c), Help: "remove it, or put the value in quotes"}
	}
	if r, size := utf8.DecodeRune(rest); r == '–' || r == '—' {
		return copied(Span{at, at + size}, fmt.Sprintf("%c is not a YAML dash", r), `write "- " in its place`)
	}
	if r, size := utf8.DecodeRune(rest); r == '“' || r == '”' || r == '„' || r == '‘' || r == '’' {
		return proseQuote(Span{at, at + size}, r, "YAML")
	}
	return nil
}

// withoutQuotes is the mistake of a text that needs quotes, rest being its line from there on.
func (s *yamlSearch) withoutQuotes(at int, rest []byte, message string) *mistake {
	word := bytes.TrimRight(rest[:plainEnd(rest)], " ")
	return &mistake{At: Span{at, at + len(word)}, Message: message, Help: fmt.Sprintf("put it in quotes: %s", s.quote(word))}
}

// plainEnd is where a value without quotes ends on its line.
func plainEnd(text []byte) int {
	if i := colonIn(text); i >= 0 {
		text = text[:i]
	}
	if i := bytes.Index(text, []byte(" #")); i >= 0 {
		text = text[:i]
	}
	if i := bytes.IndexAny(text, ",]}"); i > 0 {
		text = text[:i]
	}
	return len(text)
}

// quote quotes a word for a help text; a word that may be secret becomes "…".
func (s *yamlSearch) quote(word []byte) string {
	if s.doc.source.Sensitive() || len(word) > 80 {
		return `"…"`
	}
	if bytes.ContainsAny(word, `"\`) {
		return "'" + strings.ReplaceAll(string(word), "'", "''") + "'"
	}
	return `"` + string(word) + `"`
}

// lines passes over a text of several lines behind | or >.
func (s *yamlSearch) lines(at, end int) *mistake {
	if !blockHeader.Match(s.text[at:end]) {
		return &mistake{At: Span{at, end}, Message: fmt.Sprintf("text follows the %c of a block of text", s.text[at]),
			Help: "begin the text on the next line, or put it in quotes"}
	}
	for s.line < len(s.starts)-1 {
		start, end := s.bounds(s.line)
		content := bytes.TrimLeft(s.text[start:end], " ")
		if len(content) > 0 && end-len(content)-start <= s.column() {
			return nil
		}
		s.line++
	}
	return nil
}

// lineOf goes to the line behind the one that an offset is in, and returns where that ends.
func (s *yamlSearch) lineOf(offset int) (end int) {
	for s.line < len(s.starts)-1 && s.starts[s.line] <= offset {
		s.line++
	}
	_, end = s.bounds(s.line - 1)
	return end
}

// quotedKey matches a key with one quote.
var quotedKey = regexp.MustCompile(`^["']@?[\w.-]+:(?:\s|$)`)

var looksLikeEntry = regexp.MustCompile(`^\s*(?:- |-$|["']?[@\w][\w.-]*["']?:(?:\s|$))`)

// quoted reads a text in quotes, and what stands behind it.
func (s *yamlSearch) quoted(at, end int) *mistake {
	closed := at + endOfQuoted(s.text[at:], 0)
	if m := s.escapes(at, min(closed, end)); m != nil {
		return m
	}
	unclosed := &mistake{At: Span{at, end}, Message: "the quote is not closed", Help: fmt.Sprintf("write %c at the end of the text", s.text[at])}
	if quotedKey.Match(s.text[at:end]) {
		unclosed.Help = fmt.Sprintf("write %c in front of the colon", s.text[at])
	}
	if closed > end {
		if !closesQuote(s.text[at:], closed-at) {
			return unclosed
		}
		for line := s.line; line < len(s.starts)-1 && s.starts[line] < closed; line++ {
			if start, to := s.bounds(line); looksLikeEntry.Match(s.text[start:to]) {
				return unclosed
			}
		}
		if end = s.lineOf(closed - 1); s.behind(closed, end) != nil {
			return unclosed
		}
		return nil
	}
	if !closesQuote(s.text[at:], closed-at) {
		return unclosed
	}
	return s.behind(closed, end)
}

// escapes is the mistake of a backslash in double quotes that YAML does not know.
func (s *yamlSearch) escapes(from, to int) *mistake {
	if s.text[from] != '"' {
		return nil
	}
	for i := from + 1; i+1 < to; i++ {
		if s.text[i] != '\\' {
			continue
		}
		i++
		if strings.IndexByte("0abt\tnvfre \"/\\N_LPxuU\r\n", s.text[i]) < 0 {
			if s.doc.source.Sensitive() {
				return &mistake{
					At: Span{i - 1, i}, Message: "a backslash in double quotes does not begin an escape",
					Help: "double it, or put the text in single quotes",
				}
			}
			_, size := utf8.DecodeRune(s.text[i:])
			return &mistake{At: Span{i - 1, i + size}, Message: fmt.Sprintf("%s is not a YAML escape", s.text[i-1:i+size]),
				Help: fmt.Sprintf("double the backslash, as in \\%s, or put the text in single quotes", s.text[i-1:i+size])}
		}
	}
	return nil
}

// behind is the mistake of what stands on a line behind a value.
func (s *yamlSearch) behind(at, end int) *mistake {
	rest := s.text[at:end]
	content := bytes.TrimLeft(rest, " \t")
	switch {
	case len(content) == 0 || content[0] == '#' && len(content) < len(rest):
		return nil
	case content[0] == ',':
		return &mistake{
			At: Span{end - len(content), end - len(content) + 1}, Message: "a comma follows the value",
			Help: "remove it: YAML has commas between brackets only",
		}
	case content[0] == '}' || content[0] == ']':
		return closesNothing(end-len(content), content[0])
	}
	m := &mistake{
		At: Span{end - len(content), end}, Message: "text follows the end of the value",
		Help: "put the whole value in one pair of quotes, or remove the rest",
	}
	if at > 0 && s.text[at-1] == '\'' {
		m.Help = "write '' for an apostrophe within single quotes, or put the text in double quotes"
	}
	return m
}

// plain reads a value without quotes.
func (s *yamlSearch) plain(at, end int) *mistake {
	if colon := colonIn(s.text[at:end]); colon >= 0 {
		return &mistake{At: Span{at, end}, Message: "an unquoted value contains a colon",
			Help: `put the value in quotes, or begin a new line for the second key`}
	}
	for s.line < len(s.starts)-1 {
		start, end := s.bounds(s.line)
		content := bytes.TrimLeft(s.text[start:end], " ")
		column := end - len(content) - start
		switch {
		case len(bytes.TrimSpace(content)) == 0:
		case column <= s.column() || content[0] == '#' || content[0] == '\t':
			return nil
		case s.top() == nil:
			return nil
		case colonIn(content) >= 0:
			at := end - len(content)
			item := yamlBlock{column: column, isList: isItem(content), last: Span{at, at + 1}}
			if !item.isList {
				if key, _, ok := s.key(at, end); ok {
					item.last = key
				} else {
					item.last = Span{at, end}
				}
			}
			return s.tooDeep(item)
		}
		s.line++
	}
	return nil
}
