package decode

import (
	"bytes"
	"regexp"
	"strings"

	"xdspub/diag"
	"xdspub/source/syntax"
	"xdspub/xds"
)

// IgnoreComment is a comment in a source that says which findings are not to be shown:
// # xdspub:ignore CODE reason.
type IgnoreComment struct {
	// Range is that of the comment, from its # to the end of the line.
	diag.Range
	// Codes are the words behind the mark, separated by commas; nil for none.
	Codes []string
	// HasReason reports whether a reason follows.
	HasReason bool
	// Line is the line that the comment concerns: its own line or, if the comment stands alone on its line,
	// the next non-empty line; 0 for none.
	Line int
	// Resource is the resource that begins on that line below the comment.
	Resource xds.Key
	// Sensitive is the Sensitive of findings about the comment.
	Sensitive bool
	// Last means that further comments exist and are not read.
	Last bool
}

const (
	// maxIgnoreComments bounds those of a file.
	maxIgnoreComments = 10_000
	// maxIgnoreCodes bounds the bytes of the codes that one comment has.
	maxIgnoreCodes = 512
)

// ignoreMark is the beginning of a comment that is an IgnoreComment.
const ignoreMark = "xdspub:ignore"

// ignoreComments finds the IgnoreComments in a source that holds resources. Most sources have
// none, and cost one search for the mark.
func ignoreComments(s *Source, resources []*xds.Resource) []IgnoreComment {
	if s.Format != syntax.YAML && s.Format != syntax.TextProto || !bytes.Contains(s.Data(), []byte(ignoreMark)) {
		return nil
	}
	c := commentSearch{source: s, begins: make(map[int]xds.Key)}
	for n, start := range s.Places().Lines {
		end := len(s.Data())
		if n+1 < len(s.Places().Lines) {
			end = s.Places().Lines[n+1] - 1
		}
		if c.line(n+1, start, end); len(c.found) == maxIgnoreComments {
			c.found[len(c.found)-1].Last = true
			break
		}
	}
	if c.above {
		for _, r := range resources {
			for _, line := range firstLines(r) {
				if _, taken := c.begins[line]; !taken {
					c.begins[line] = r.Key
				}
			}
		}
	}
	for i := range c.found {
		if is := &c.found[i]; is.Line > is.Range.Line {
			is.Resource = c.begins[is.Line]
		}
	}
	return c.found
}

// firstLines returns the line on which a resource begins, and that of the wrapper around it.
func firstLines(r *xds.Resource) []int {
	at := r.Origin.(origin)
	lines := []int{at.Range("").Line}
	if path := steps(at.base); r.Meta != nil && len(path) > 0 {
		lines = append(lines, at.document().RangeOf(path[:len(path)-1], false).Line)
	}
	return lines
}

// commentSearch goes through a source line by line.
type commentSearch struct {
	source *Source
	found  []IgnoreComment
	// waiting is how many of the last found wait for the line that they are about.
	waiting int
	// above means that a comment stands alone on its line.
	above  bool
	begins map[int]xds.Key // the resources, by their first lines
	// block is the indent that the lines of a text in YAML's block style exceed. block has a meaning only
	// while inText is set.
	block  int
	inText bool
}

// line looks at a line of the source, which stands from one offset to another.
func (c *commentSearch) line(n, start, end int) {
	text := c.source.Data()[start:end]
	indent := len(text) - len(bytes.TrimLeft(text, " "))
	content := bytes.TrimSpace(text)
	if len(content) == 0 || c.inText && indent > c.block {
		return
	}
	c.inText = false
	hash := c.comment(text)
	before := bytes.TrimSpace(text[:hash])
	if len(before) > 0 && !bytes.Equal(before, []byte("---")) {
		for i := len(c.found) - c.waiting; i < len(c.found); i++ {
			c.found[i].Line = n
		}
		c.waiting = 0
		c.beginsText(text[:hash])
	}
	if hash == len(text) {
		return
	}
	rest, is := bytes.CutPrefix(bytes.TrimLeft(text[hash:], "# \t"), []byte(ignoreMark))
	if !is || len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r") {
		return
	}
	found := IgnoreComment{Range: c.source.Span(start+hash, start+len(bytes.TrimRight(text, " \t\r"))), Line: n, Sensitive: c.source.Sensitive()}
	found.Codes, found.HasReason = ignored(rest)
	if len(before) == 0 {
		found.Line = 0
		c.above = true
		c.waiting++
	}
	c.found = append(c.found, found)
}

// ignored reads what stands behind the mark.
func ignored(rest []byte) (codes []string, hasReason bool) {
	rest = bytes.TrimSpace(rest)
	end := bytes.IndexAny(rest, " \t")
	if end < 0 {
		end = len(rest)
	}
	word := strings.Trim(string(rest[:min(end, maxIgnoreCodes)]), ",:")
	if word == "" {
		return nil, false
	}
	return strings.Split(word, ","), len(bytes.Trim(rest[end:], " \t-–:")) > 0
}

// comment returns the offset of the # that begins the comment of a line, or the length of the line.
func (c *commentSearch) comment(text []byte) int {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		b := text[i]
		begins := i == 0 || bytes.IndexByte([]byte(" \t[{,:(<"), text[i-1]) >= 0
		switch {
		case quote != 0:
			switch {
			case quote == '"' && b == '\\', quote == '\'' && b == quote && i+1 < len(text) && text[i+1] == quote:
				i++ // what is escaped
			case b == quote:
				quote = 0
			}
		case (b == '"' || b == '\'') && (begins || c.source.Format == syntax.TextProto):
			quote = b
		case b == '#' && (c.source.Format == syntax.TextProto || i == 0 || text[i-1] == ' ' || text[i-1] == '\t'):
			return i
		}
	}
	return len(text)
}

// textHeader is what a line of YAML ends with whose value is the text on the lines below.
var textHeader = regexp.MustCompile(`(?:^|[ \t])[|>][-+0-9]{0,2}[ \t\r]*$`)

// beginsText notes whether the lines below a line, given without its comment, are a text.
func (c *commentSearch) beginsText(text []byte) {
	if c.source.Format != syntax.YAML || len(text) > syntax.LongLine || !textHeader.Match(text) {
		return
	}
	c.inText, c.block = true, 0
	for i := 0; i < len(text) && (text[i] == ' ' || text[i] == '-' && i+1 < len(text) && text[i+1] == ' '); i++ {
		if text[i] == '-' {
			c.block = i
		} else if i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '|' && text[i+1] != '>' {
			c.block = i + 1
		}
	}
}
