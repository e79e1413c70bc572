package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// vague has the words that stand for a thing that another sentence names, or for no thing. A sentence of many vague
// words has to be read twice. The Go standard library, grpc-go and Prometheus use nouns and verbs in their place.
var vague = func() map[string]bool {
	words := make(map[string]bool)
	for word := range strings.FieldsSeq(`
		it its itself that this these those they them their what which who whom whose whoever whatever
		one ones some any other others another all none nothing something anything everything each both
		is are was were be been has have had does do did so such there here where whether else same`) {
		words[word] = true
	}
	return words
}()

// A sentence is vague if it has at least longSentence words and more than longShare of them are vague, or if it is
// shorter, but not a fragment, and more than shortShare of its words are vague.
const (
	fragment     = 4
	longSentence = 8
	longShare    = 0.28
	shortShare   = 0.5
)

// sentence is a sentence of a comment or of a page.
type sentence struct {
	File  string
	Line  int // where the comment or the paragraph begins
	Text  string
	Share float64 // of the words that are vague
	Vague bool
}

var (
	wordsOf     = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
	sentenceEnd = regexp.MustCompile(`[.:;!?]\s+([A-Z"*])`)
)

// sentencesOf returns the sentences of a text, without fragments.
func sentencesOf(file string, line int, text string) (list []sentence) {
	text = strings.Join(strings.Fields(text), " ")
	for len(text) > 0 {
		is := text
		if at := sentenceEnd.FindStringSubmatchIndex(text); at != nil {
			is = text[:at[2]]
		}
		text = text[len(is):]
		words := wordsOf.FindAllString(is, -1)
		if len(words) < fragment {
			continue
		}
		n := 0
		for _, word := range words {
			if vague[strings.ToLower(word)] {
				n++
			}
		}
		s := sentence{File: file, Line: line, Text: strings.TrimSpace(is), Share: float64(n) / float64(len(words))}
		s.Vague = s.Share > shortShare || len(words) >= longSentence && s.Share >= longShare
		list = append(list, s)
	}
	return list
}

// commentsOf returns the sentences of the comments of a Go file. A generated file and a test have none.
func commentsOf(path string) ([]sentence, error) {
	if strings.HasSuffix(path, "_test.go") {
		return nil, nil
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	var list []sentence
	for _, group := range f.Comments {
		list = append(list, sentencesOf(path, files.Position(group.Pos()).Line, group.Text())...)
	}
	return list, nil
}

var (
	fence     = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	inCode    = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	paragraph = regexp.MustCompile(`\n\s*\n|\n\s*[-*|] |\n\s*\d+\. `)
)

// textOf returns the sentences of a page in Markdown, without listings, tables and headings.
func textOf(path string) ([]sentence, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := fence.ReplaceAllStringFunc(string(b), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	text = link.ReplaceAllString(inCode.ReplaceAllString(text, "CODE"), "$1")
	var list []sentence
	line, from := 1, 0
	for _, at := range append(paragraph.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		part := text[from:at[0]]
		if start := strings.TrimLeft(part, " \n"); !strings.HasPrefix(start, "|") && !strings.HasPrefix(start, "#") {
			list = append(list, sentencesOf(path, line, part)...)
		}
		line += strings.Count(text[from:at[1]], "\n")
		from = at[1]
	}
	return list, nil
}

// sentences returns the sentences of all comments and of all pages below a path.
func sentences(root string) (comments, pages []sentence, err error) {
	err = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (name[0] == '.' || name == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			list, err := commentsOf(path)
			comments = append(comments, list...)
			return err
		case strings.HasSuffix(name, ".md"):
			list, err := textOf(path)
			pages = append(pages, list...)
			return err
		}
		return nil
	})
	return comments, pages, err
}

// vagueOf returns the vague sentences, the worst first.
func vagueOf(list []sentence) []sentence {
	list = slices.DeleteFunc(slices.Clone(list), func(s sentence) bool { return !s.Vague })
	slices.SortStableFunc(list, func(a, b sentence) int { return cmp.Compare(b.Share, a.Share) })
	return list
}
