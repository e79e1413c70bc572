// Package glossary tests that each concept has one word: no exported name and no other document has a word that
// docs/glossary.md rejects.
package glossary

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xdspub/cmd/codes"
)

const root = "../.."

// rejected returns the last column of the glossary's tables: names, which are words in code font and count only in
// code, and words.
func rejected(t *testing.T) (names, words []string) {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if last := strings.TrimSpace(cells[len(cells)-1]); len(cells) > 1 && last != "" && last != "not" && !strings.HasPrefix(last, "---") {
			for word := range strings.SplitSeq(last, ",") {
				word = strings.TrimSpace(word)
				if name := strings.Trim(word, "`"); name != word {
					names = append(names, name)
				} else {
					words = append(words, word)
				}
			}
		}
	}
	if len(names) == 0 || len(words) == 0 {
		t.Fatal("the glossary rejects nothing: its tables have another form")
	}
	return names, words
}

func TestDocuments(t *testing.T) {
	names, words := rejected(t)
	documents, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	inFolders, err := filepath.Glob(root + "/docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	name := regexp.MustCompile("`(?:[a-z]+\\.)?(" + strings.Join(names, "|") + ")`")
	code := regexp.MustCompile("`[^`]*`")
	for _, file := range slices.Concat(documents, inFolders, []string{root + "/README.md", root + "/CONTRIBUTING.md"}) {
		if filepath.Base(file) == "glossary.md" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, listing := 0, false
		for line := range strings.Lines(string(text)) {
			n++
			if strings.HasPrefix(line, "```") {
				listing = !listing
			}
			found := cmp.Or(name.FindString(line), word.FindString(code.ReplaceAllString(line, "")))
			if found != "" && !listing {
				t.Errorf("%s:%d: %q: docs/glossary.md has another word", strings.TrimPrefix(file, root+"/"), n, found)
			}
		}
	}
}

// riddles matches phrases that a reader has to read twice.
var riddles = regexp.MustCompile(`\b(?:` + strings.Join([]string{
	`(?:is|are) none\b`, `none that`, `none of (?:them|its|an?)\b`, `(?:it|this|that|which|file|value) is no [a-km-z]`, `what can't be`, `asks? for what`,
	`(?:stands?|standing) (?:in|at|on|beside|behind|twice|alone|among|where|here|there|once|together|without)`,
	`(?:is|are) taken`, `goes by`, `go(?:es)? with\b`, `let go`, `without a word`, `(?:is|are) not looked at`,
	`(?:has|of) another \w+ than`, `what comes`, `is to be got`,
	`leaves? away`, `can't be told`, `goes back`, `taken? in\b`, `as what`, `in the place of`, `nobody can tell`, `what it leads to`, `makes no subscription`, `put back`, `is out again`,
}, "|") + `)`)

// TestSummaries: the first line of a rule's Doc is a sentence in plain words, and fits a line.
func TestSummaries(t *testing.T) {
	for _, code := range codes.All() {
		summary := code.Summary()
		if found := riddles.FindString(summary); found != "" {
			t.Errorf("%s: %q: %q has to be read twice", code.Name, summary, found)
		}
		if len(summary) > 85 || !strings.HasSuffix(summary, ".") {
			t.Errorf("%s: %q is no sentence of 85 characters at most", code.Name, summary)
		}
	}
}

// spoken are the packages whose messages a user may read, except the rules.
var spoken = []string{
	"xds/bind", "setup/bootstrap", "check", "cmd/xdspub", "render/confirm", "watch/control", "watch", "diag", "envoy", "source/follow", "source/gitdir", "setup/grpcboot", "render/planner",
	"render/publish", "render/published", "render", "report", "source/revision", "internal/safefile", "watch/status", "render/trim", "watch/notify",
	"source/decode", "source/load", "source/settingsfile", "source/syntax", "validate/transition", "xds", "validate/*", "validate/rules/*",
}

// TestMessages: the messages of the program, except those of rules, have no riddles.
func TestMessages(t *testing.T) {
	for _, dir := range spoken {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "codes.go" { // rules
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for text, pos := range texts(parsed) {
				if found := riddles.FindString(text); found != "" {
					t.Errorf("%s: %q: %q has to be read twice", set.Position(pos), text, found)
				}
			}
		}
	}
}

// texts returns the string literals of a file with several words.
func texts(file *ast.File) iter.Seq2[string, token.Pos] {
	return func(yield func(string, token.Pos) bool) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(strings.TrimSpace(text), " ") {
					return yield(text, lit.Pos())
				}
			}
			return true
		})
	}
}

func TestExportedNames(t *testing.T) {
	names, _ := rejected(t)
	camel := regexp.MustCompile(`[A-Z]+[a-z0-9]*`)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && e.Name() != ".." || e.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, id := range declared(file) {
			for _, part := range camel.FindAllString(id.Name, -1) {
				if id.IsExported() && slices.Contains(names, part) {
					t.Errorf("%s: %s: docs/glossary.md has another word than %s", files.Position(id.Pos()), id.Name, part)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// declared returns the names that a file declares: its functions, methods, types, fields,
// constants and variables.
func declared(file *ast.File) (list []*ast.Ident) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			list = append(list, n.Name)
			return false
		case *ast.TypeSpec:
			list = append(list, n.Name)
		case *ast.ValueSpec:
			list = append(list, n.Names...)
		case *ast.Field:
			list = append(list, n.Names...)
		}
		return true
	})
	return list
}
