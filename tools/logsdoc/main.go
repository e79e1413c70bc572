// Command logsdoc writes docs/logs.md from the comments of package event: the meaning of each event, the reader's
// reaction, and the keys.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"xdspub/event"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: logsdoc ROOT")
		os.Exit(2)
	}
	text, err := generate(os.Args[1])
	if err == nil {
		err = os.WriteFile(path(os.Args[1]), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "logsdoc:", err)
		os.Exit(1)
	}
}

func path(root string) string { return filepath.Join(root, "docs", "logs.md") }

// groups are the files of package event, in the order of the page.
var groups = []struct{ file, title string }{
	{"source.go", "The source tree"},
	{"publish.go", "Publishing"},
	{"operator.go", "Decisions of operators"},
	{"envoy.go", "Envoys"},
	{"client.go", "Clients"},
	{"server.go", "The server"},
	{"output.go", "The output directory"},
	{"process.go", "The watch"},
	{"hook.go", "Hooks"},
	{"store.go", "Fleets"},
}

// described is the description of an event in its source.
type described struct {
	typ, name, level, message string
	means, do                 string
	keys                      []key
}

type key struct {
	name, means string
	optional    bool
	embeds      string // the type of an embedded struct, which stands before, in place of its keys
}

// generate returns the text of docs/logs.md for the repository at root.
func generate(root string) ([]byte, error) {
	var list, pages bytes.Buffer
	for _, g := range groups {
		events, err := eventsOf(filepath.Join(root, "event", g.file))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&pages, "\n## %s\n", g.title)
		for _, e := range events {
			fmt.Fprintf(&list, "| [`%[1]s`](#%[1]s) | %[2]s | %[3]s |\n", e.name, e.level, e.message)
			e.write(&pages)
		}
	}
	return slices.Concat([]byte(intro), list.Bytes(), pages.Bytes()), nil
}

const intro = `# Logs

<!-- Made by go generate ./tools/logsdoc; a test compares. Edit the comments of package event instead. -->

For people who read the log, or alert on it. After this page you know each event, its keys, and the
remedy.

` + "`watch`, `serve` and `render`" + ` log to standard error, one line an event. --log-format text writes logfmt, key=value
pairs, and has the second name logfmt; --log-format json writes one JSON object an event. A line has the time,
the level, a message for people, and the key ` + "`event`" + `. The
values of ` + "`event`" + ` and the keys of each event are stable from version to version; messages may change. If
the source tree is published for several [targets](dynamic-parameters.md#targets), lines about a target have
the key ` + "`target`" + ` with its name. Times are RFC 3339, durations have the form "1m30s", counts are numbers.
--log-level debug also logs DEBUG; --quiet logs warnings and errors only.

Alert on the level ERROR, or on these events, to learn that Envoy does not run the source tree:
` + "`source-invalid`, `rolled-back`, `refused-kept`, `rollback-failed`, `failed`, `internal-error`, `file-not-applied`" + `.
These events end the alert: ` + "`source-valid`, `refusal-ended`, `recovered`, `envoy-in-sync`" + `. A dead or
hanging watch logs nothing; ` + "`xdspub status`" + ` reports such a watch.

| event | level | message |
|---|---|---|
`

func (e described) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n### %s\n\n%s. %s\n", e.name, e.level, e.means)
	if e.do != "" {
		fmt.Fprintf(b, "\n**What to do:** %s\n", e.do)
	}
	if len(e.keys) == 0 {
		return
	}
	b.WriteString("\n| key | |\n|---|---|\n")
	for _, k := range e.keys {
		means := k.means
		if k.optional {
			means = strings.TrimPrefix(means+"; optional", "; ")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", k.name, means)
	}
}

// eventsOf returns the events of a file.
func eventsOf(path string) ([]described, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var list []described
	at, embedded := make(map[string]int), make(map[string]bool)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.TYPE {
				e := typeOf(d)
				for i := 0; i < len(e.keys); i++ {
					if typ := e.keys[i].embeds; typ != "" {
						embedded[typ] = true
						e.keys = slices.Replace(e.keys, i, i+1, list[at[typ]].keys...)
					}
				}
				at[e.typ] = len(list)
				list = append(list, e)
			}
		case *ast.FuncDecl:
			if d.Name.Name == "kind" {
				if err := list[at[receiver(d)]].kind(d); err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(e described) bool { return embedded[e.typ] }), nil
}

func receiver(d *ast.FuncDecl) string { return d.Recv.List[0].Type.(*ast.Ident).Name }

// typeOf returns the part of the description that the type of an event and its comments have.
func typeOf(d *ast.GenDecl) described {
	spec := d.Specs[0].(*ast.TypeSpec)
	e := described{typ: spec.Name.Name}
	e.means, e.do, _ = strings.Cut(d.Doc.Text(), "\nDo: ")
	e.means = sentence(strings.TrimPrefix(e.means, e.typ+" means that "))
	e.do = sentence(e.do)
	for _, f := range spec.Type.(*ast.StructType).Fields.List {
		tag := ""
		if f.Tag != nil {
			tag, _ = strconv.Unquote(f.Tag.Value)
		}
		if typ, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
			e.keys = append(e.keys, key{embeds: typ.Name})
		}
		for _, n := range f.Names {
			if name, optional, ok := event.KeyOf(reflect.StructField{Name: n.Name, Tag: reflect.StructTag(tag)}); ok {
				e.keys = append(e.keys, key{name: name, means: strings.TrimSpace(strings.ReplaceAll(f.Comment.Text(), "\n", " ")), optional: optional})
			}
		}
	}
	return e
}

// sentence returns a comment on one line, which begins with a capital.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// kind adds the part of the description that the method kind returns.
func (e *described) kind(d *ast.FuncDecl) error {
	var literal *ast.CompositeLit
	ast.Inspect(d, func(n ast.Node) bool {
		if c, ok := n.(*ast.CompositeLit); ok {
			literal = c
		}
		return true
	})
	if literal == nil || len(literal.Elts) != 3 {
		return fmt.Errorf("%s: kind returns no literal with a name, a level and a message", e.typ)
	}
	e.name, e.level, e.message = text(literal.Elts[0]), "INFO to ERROR", "what is wrong"
	if s, ok := literal.Elts[1].(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Level") && s.Sel.Name != "Level" {
		e.level = strings.ToUpper(strings.TrimPrefix(s.Sel.Name, "Level"))
	}
	if message := text(literal.Elts[2]); message != "" {
		e.message = message
	}
	if e.name == "" {
		return fmt.Errorf("%s has no name", e.typ)
	}
	return nil
}

// text returns the value of a string literal; "" for another expression.
func text(x ast.Expr) string {
	l, ok := x.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, _ := strconv.Unquote(l.Value)
	return s
}
