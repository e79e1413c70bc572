// Command rulesdoc writes docs/rules.md: every code that a finding can have, with
// its reason, and for validation rules and those about what runs an example and what
// xdspub says of it. The examples are the rules' own test cases, the output is real.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"xdspub/pipeline"
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

// generate returns the text of docs/rules.md for the repository at root.
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
		example, err := exampleOf(root, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if example != nil {
			err = example.write(&b)
		} else {
			err = writeChange(&b, root, c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return b.Bytes(), nil
}
