// Command rulesdoc writes docs/rules.md: every code that a finding can have, with
// its reason, and for validation rules an example and what xdspub says of it. The
// examples are the rules' own test cases, the output is real.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"

	"xdspub/diag"
	"xdspub/internal/certs"
	"xdspub/load"
	"xdspub/pipeline"
	"xdspub/validate"
	"xdspub/xds"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulesdoc ROOT")
		os.Exit(2)
	}
	text, err := generate(os.Args[1])
	if err == nil {
		err = os.WriteFile(path(os.Args[1]), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rulesdoc:", err)
		os.Exit(1)
	}
}

func path(root string) string { return filepath.Join(root, "docs", "rules.md") }

// generate is the text of docs/rules.md for the repository at root.
func generate(root string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`# Rules

<!-- Made by go generate ./internal/rulesdoc; a test compares. Edit the rules' Doc instead. -->

Every code that a finding can have. An error drops the whole snapshot: no byte of
the output moves. A warning is shown, and refuses with --warnings-as-errors. An info
is a remark. A rule that is off by default runs with --enable, any other is left out
with --disable.
What stands here of Envoy was tried on Envoy 1.40.0.

| code | severity | |
|---|---|---|
`)
	codes := pipeline.Codes()
	for _, c := range codes {
		fmt.Fprintf(&b, "| [%[1]s](#%[1]s) | %[2]s | %[3]s |\n", c.Name, c.Severity, c.Summary())
	}
	for _, c := range codes {
		fmt.Fprintf(&b, "\n## %s\n\n%s (%s)\n", c.Name, c.Doc, c.Severity)
		if err := example(&b, root, c.Name); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// example shows the first bad tree of a rule's test cases and what comes of it.
func example(b *bytes.Buffer, root, code string) error {
	archive, err := txtar.ParseFile(filepath.Join(root, "validate", "testdata", code+".txtar"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rulesdoc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := ""
	for _, f := range archive.Files {
		top, name, _ := strings.Cut(f.Name, "/")
		if tree == "" && strings.HasPrefix(top, "bad") {
			tree = top
		}
		if tree == "" || top != tree {
			continue
		}
		text := withoutWants(f.Data)
		expanded, err := certs.Expand(text)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), expanded, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(b, "\n`%s`\n\n```yaml\n%s```\n", name, certs.Show(text))
	}
	o := validate.Options{Now: certs.Now, Enable: []string{code}}
	result, err := load.New(load.Options{}).Load(dir)
	if err == nil && len(result.Files) == 1 && filepath.Base(result.Files[0]) == "boot.yaml" {
		if _, result, err = load.BootstrapResources(result.Files[0]); err == nil {
			o.Bootstrap = result.Resources[0]
		}
	}
	if err != nil {
		return err
	}
	list := append(result.Diagnostics, validate.Run(xds.NewSnapshot(result.Resources), o)...).Sort()
	var said bytes.Buffer
	if err := diag.WriteText(&said, list, diag.TextOptions{Line: result.Line}); err != nil {
		return err
	}
	fmt.Fprintf(b, "\n```\n%s```\n", strings.ReplaceAll(said.String(), dir+string(filepath.Separator), ""))
	return nil
}

// withoutWants drops the expectations that the test cases carry.
func withoutWants(text []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if before, _, ok := bytes.Cut(line, []byte("# want ")); ok {
			line = append(bytes.TrimRight(before, " "), '\n')
		}
		kept = append(kept, line...)
	}
	return kept
}
