package syntax

import (
	"bytes"
	"regexp"
	"strings"
)

// What stands in a file that was not written for its parser: it looks like YAML, JSON or a text
// proto to nobody but a program that runs first.

var (
	conflictMarker = regexp.MustCompile(`(?m)^(?:<{7} \S|>{7} \S|\|{7} \S|={7}\r?$)`)
	templateMark   = regexp.MustCompile(`\{\{|\{%|<%|\$\{|\{#`)
	goTemplate     = regexp.MustCompile(`^\{\{-?\s*(?:\.|\$|(?:range|end|if|else|with|template|include|define|block|toYaml|tpl|required|lookup)\b)`)
	handlebars     = regexp.MustCompile(`^\{\{[{#/^>!]`)
)

// notYetText returns the mistake of a text that a program or a person must process first: a template, or an
// unfinished merge. notYetText checks the text up to an offset only.
func notYetText(text []byte, before int) *mistake {
	if at := conflictMarker.FindIndex(text); at != nil && at[0] <= before {
		end := at[0] + bytes.IndexByte(append(text[at[0]:len(text):len(text)], '\n'), '\n')
		return &mistake{At: Span{at[0], end}, Message: "the file has a merge conflict that is " +
			"not resolved", Help: "keep one of the two sides, and remove the lines <<<<<<<, ======= and >>>>>>>"}
	}
	for _, at := range templateMark.FindAllIndex(text[:min(len(text), before)], 16) {
		if m := templateAt(text, at[0]); m != nil && !isComment(text, at[0]) {
			return m
		}
	}
	return nil
}

// templateAt is the mistake of a template that begins at an offset.
func templateAt(text []byte, at int) *mistake {
	line := text[at:]
	line = line[:len(line)-len(bytes.TrimLeft(line, "{%<$#"))+lineLength(bytes.TrimLeft(line, "{%<$#"))]
	what, run := templateKind(line)
	if what == "" {
		return nil
	}
	shown := line
	for _, end := range []string{"}}", "%}", "%>", "}"} {
		if i := bytes.Index(line[min(2, len(line)):], []byte(end)); i >= 0 {
			shown = line[:i+2+len(end)]
			break
		}
	}
	return &mistake{At: Span{at, at + len(shown)}, Message: what, Help: run}
}

// templateKind recognizes a template by its mark, and names the program to run.
func templateKind(mark []byte) (what, run string) {
	switch {
	case goTemplate.Match(mark):
		return "the file is a Go template, as Helm has them", "render it first (helm template …), and check the output: xdspub fills in nothing"
	case handlebars.Match(mark):
		return "the file is a Mustache template", "render it first, and check the output: xdspub fills in nothing"
	case bytes.HasPrefix(mark, []byte("{{")), bytes.HasPrefix(mark, []byte("{%")), bytes.HasPrefix(mark, []byte("{#")):
		return "the file is a Jinja template, as Ansible has them", "render it first, and check the output: xdspub fills in nothing"
	case bytes.HasPrefix(mark, []byte("<%")):
		return "the file is an ERB template", "render it first (erb …), and check the output: xdspub fills in nothing"
	case bytes.HasPrefix(mark, []byte("${")):
		return "this is a shell variable, which xdspub does not replace", "write the value here, or run envsubst first and check the output"
	}
	return "", ""
}

// isComment reports whether an offset is in a comment of YAML.
func isComment(text []byte, at int) bool {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	trimmed := strings.TrimSpace(string(line))
	return strings.HasPrefix(trimmed, "#") || strings.Contains(string(line), " #")
}
