package syntax

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"xdspub/diag"
)

var (
	yamlNoise = regexp.MustCompile(`^(?:error converting YAML to JSON: )?(?:yaml: )?(?:line (\d+): )?`)
	// What the parser finds, as opposed to its scanner: the parser's lines count
	// from 0.
	byParser = regexp.MustCompile(`^(?:did not find expected (?:<|node content|'-'|key|',')|found undefined tag|found duplicate %|found incompatible)`)
)

// parserLine is the line of the document that a parser's error speaks of.
func parserLine(err error) int {
	m := yamlNoise.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1])
	if line == 0 || byParser.MatchString(err.Error()[len(m[0]):]) {
		line++
	}
	return line
}

// yamlError explains why a document can't become JSON: the document is invalid YAML, or has a value that JSON
// lacks. yamlError uses the parser's message only if the message can't quote a value, which may be secret.
func (d YAMLDocument) yamlError(err error) diag.List {
	if doubled := d.doubledKeys(); len(doubled) > 0 {
		return doubled
	}
	reason := yamlNoise.ReplaceAllString(err.Error(), "")
	starts := d.lines()
	for _, m := range []*mistake{notYetText(d.Text, starts[min(parserLine(err)+1, len(starts)-1)]), d.ForeignText()} {
		if m != nil {
			return diag.List{m.Finding(d.Document)}
		}
	}
	syntax := func(p diag.Range, message, help string) diag.List {
		return diag.List{d.source.Finding(CodeSyntax, p, message, help)}
	}
	switch {
	case strings.Contains(reason, "excessive aliasing"):
		return diag.List{d.tooManyAliases("too far")}
	case strings.Contains(reason, "unsupported value"):
		return diag.List{d.source.Finding(CodeInvalidValue, d.find(isNotFinite), "the value is not a "+
			"finite number", "Envoy can crash on such a number; if it is text, put it in quotes")}
	case strings.Contains(reason, "exceeded max depth"):
		return diag.List{d.source.Finding(CodeSyntax, d.lineRange(parserLine(err)), "the file is nested too deeply", TooDeepHelp)}
	case strings.Contains(reason, "control characters"):
		return syntax(d.Point(controlCharacter(d.Text)), "control characters are not allowed", `write it as "\x…", in double quotes`)
	case strings.HasPrefix(reason, "unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(reason, "unknown anchor '"), "' referenced")
		at := max(bytes.Index(d.Text, []byte("*"+name)), 0)
		return syntax(d.Span(Span{at, at + 1 + len(name)}), "an alias names no anchor of this document",
			"put text that begins with * in quotes; an anchor (&…) holds for its own document")
	case strings.Contains(reason, "map key"):
		return syntax(d.find(isOddKey), "the key of a mapping must be text", "put it in quotes")
	case strings.HasPrefix(reason, "cannot decode"), strings.HasPrefix(reason, "!!binary"):
		return syntax(d.find(isTagged), "a value does not fit its tag", "remove the tag: Envoy ignores it")
	case strings.HasPrefix(reason, "map merge"):
		return syntax(d.find(isBadMerge), "a merge key needs a mapping, or a list of mappings", "write its alias: <<: *name")
	}
	at := parserLine(err)
	if m := yamlMistake(d, at+1); m != nil {
		return diag.List{m.Finding(d.Document)}
	}
	return diag.List{d.inParserWords(reason, at).Finding(d.Document)}
}

// parserWords are sentences for what a YAML parser says, where the search knows no better.
var parserWords = []struct{ says, message, help string }{
	{"mapping values are not allowed", "a key is not allowed here", "line the keys up, or put a value with a colon in quotes"},
	{"did not find expected '-' indicator", "this line is not an entry of the list above", `put "- " in front of it, or indent it below an entry`},
	{"did not find expected key", "this line does not line up with the keys above", "begin it in the column of its neighbours"},
	{"could not find expected ':'", "a colon is missing after the key", `write "key: value"`},
	{"did not find expected ',' or", "a bracket is not closed, or a comma is missing", "write a comma between two entries, and close each bracket"},
	{"did not find expected node content", "a value is missing here", "write the value, or remove the key"},
	{"did not find expected <document start>", "the document ended before this line", "indent it like the lines above, or put --- between two documents"},
	{"found character that cannot start", "a value begins with a character that needs quotes", "put the value in quotes"},
	{"found undefined tag handle", "a value begins with ! and names no tag", "put the value in quotes"},
	{"found unexpected end of stream", "the file ends within a text in quotes", "close the quote"},
	{"found unexpected document indicator", "a document ends within a text in quotes", "close the quote"},
	{"unknown escape", "a backslash in double quotes does not begin an escape", "double it, or put the text in single quotes"},
	{"block sequence entries are not allowed", "a list entry is on the line of its key", "put the entry on a line of its own, below the key"},
}

// inParserWords is what the parser says of a line as a mistake.
func (d YAMLDocument) inParserWords(reason string, line int) mistake {
	r := d.lineSpan(line)
	for _, w := range parserWords {
		if strings.Contains(reason, w.says) {
			return mistake{At: r, Message: w.message, Help: w.help}
		}
	}
	return mistake{At: r, Message: "not valid YAML: " + reason, Help: "look at this line and the one above: their indents, quotes and brackets"}
}

// find returns the place of the first mapping key or other node for which is returns true, or the document's
// place.
func (d YAMLDocument) find(is func(n *yaml.Node, isKey bool) bool) diag.Range {
	var look func(*yaml.Node, bool) *yaml.Node
	look = func(n *yaml.Node, isKey bool) *yaml.Node {
		if is(n, isKey) {
			return n
		}
		for i, c := range n.Content {
			if found := look(c, n.Kind == yaml.MappingNode && i%2 == 0); found != nil {
				return found
			}
		}
		return nil
	}
	if root := d.YAML(); root != nil {
		if found := look(root, false); found != nil {
			return d.NodeRange(found)
		}
	}
	return d.Point(0)
}

func isNotFinite(n *yaml.Node, _ bool) bool {
	text := strings.ToLower(strings.TrimLeft(n.Value, "+-"))
	return n.Kind == yaml.ScalarNode && n.Tag == "!!float" && (text == ".inf" || text == ".nan")
}

func isOddKey(n *yaml.Node, isKey bool) bool {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return isKey && (n.Kind != yaml.ScalarNode || n.Tag == "!!null")
}

func isTagged(n *yaml.Node, _ bool) bool { return n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" }

func isBadMerge(n *yaml.Node, _ bool) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for _, m := range mergedInto(n) {
		if m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if m.Kind != yaml.MappingNode {
			return true
		}
	}
	return false
}

// controlCharacter is the offset of the first character that YAML does not allow.
func controlCharacter(text []byte) int {
	return max(bytes.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\u0085' || r == 0xfffe || r == 0xffff
	}), 0)
}

// doubledKeys finds keys that stand twice in one mapping, and those that a merge
// key further down would overwrite: which of the two wins differs from parser to
// parser.
func (d YAMLDocument) doubledKeys() diag.List {
	var list diag.List
	report := func(second, first *yaml.Node, message, help string) {
		f := d.source.Finding(CodeDuplicateKey, d.NodeRange(second), message, help)
		f.Related = []diag.Related{{Position: d.NodeRange(first).Position, Message: "first here"}}
		list = append(list, f)
	}
	d.EachMapping(func(n *yaml.Node) {
		first := make(map[string]*yaml.Node)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			text := keyText(k)
			if earlier, ok := first[text]; ok && k.Kind == yaml.ScalarNode {
				report(k, earlier, d.source.keyIn(k.Value)+" is set twice in one mapping", "keep one: "+d.source.lastCounts())
				continue
			}
			if IsMerge(k) {
				merged := &yaml.Node{Kind: yaml.MappingNode, Content: n.Content[i : i+2]}
				for j := 0; j < i; j += 2 {
					own := n.Content[j]
					if _, v := child(merged, keyText(own)); v != nil {
						report(k, own, d.source.keyIn(own.Value)+" is above a merge key that sets it too", "write the merge key first: the keys below it win")
					}
				}
			}
			first[text] = k
		}
	})
	return list
}

// expandsTooFar reports whether the document's aliases stand for more than
// MaxBytes. Only a document that can hold an alias at all is looked at.
func (d YAMLDocument) expandsTooFar() bool {
	if bytes.IndexByte(d.Text, '&') < 0 || bytes.IndexByte(d.Text, '*') < 0 || d.YAML() == nil {
		return false
	}
	sizes := make(map[*yaml.Node]int)
	var size func(*yaml.Node) int
	size = func(n *yaml.Node) int {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if known, ok := sizes[n]; ok {
			return known
		}
		sizes[n] = MaxBytes + 1 // a node below itself is endless
		total := len(n.Value) + 1
		for _, c := range n.Content {
			total = min(total+size(c), MaxBytes+1)
		}
		sizes[n] = total
		return total
	}
	return size(d.YAML()) > MaxBytes
}

func (d YAMLDocument) tooManyAliases(howFar string) diag.Diagnostic {
	p := d.find(func(n *yaml.Node, _ bool) bool { return n.Kind == yaml.AliasNode })
	return d.source.Finding(CodeTooLarge, p, "the aliases of this document expand "+howFar,
		"write the values out, or alias less deeply")
}
