// Command rulesdoc writes docs/rules: an index, and a page for each family of codes. A page explains each code. For
// validation rules and transition rules, a page also has an example with the output of xdspub. The examples are the
// test cases of the rules.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"xdspub/diag"
)

//go:generate go run . ../..

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulesdoc ROOT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "rulesdoc:", err)
		os.Exit(1)
	}
}

func folder(root string) string { return filepath.Join(root, "docs", "rules") }

// write writes the pages into docs/rules of the repository at root, and removes other files there.
func write(root string) error {
	pages, err := generate(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder(root)); err != nil {
		return err
	}
	if err := os.Mkdir(folder(root), 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder(root), name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const generated = "\n<!-- Made by go generate ./tools/rulesdoc; a test compares. Edit the rules' Doc instead. -->\n"

// generate returns the pages for the repository at root, by name.
func generate(root string) (map[string][]byte, error) {
	list, err := families(root)
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{"README.md": index(list)}
	for _, f := range list {
		if pages[f.name+".md"], err = f.page(root); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// index returns the page that links to all other pages.
func index(list []*family) []byte {
	var b bytes.Buffer
	b.WriteString("# Rules\n" + generated + `
Every code of a finding, by subject. ` + "`xdspub explain CODE`" + ` prints
the same text.

| severity | effect |
|---|---|
| error | xdspub publishes nothing, and keeps the last valid files |
| warning | is shown; with ` + "`--warnings-as-errors`" + ` it is treated as an error |
| info | is shown |

` + "`--enable CODE` turns on a rule that is off by default, `--disable CODE` turns off another." + `
A code that holds several checks has sub-codes, such as ` + "`filter-conflict/lua-two-scripts`" + `: a setting or a
comment about the code is about all of them, and one about a sub-code counts before it.
What is said about reading files and about publishing can't be turned off. Every statement
about Envoy was tried on Envoy 1.40.0.
`)
	for _, f := range list {
		fmt.Fprintf(&b, "\n## [%s](%s.md)\n\n| code | severity | what is wrong |\n|---|---|---|\n", f.heading(), f.name)
		for _, c := range f.codes {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.link(c.Name), c.Severity, c.Summary())
		}
	}
	return b.Bytes()
}

// writeChecks lists the sub-codes of a code.
func writeChecks(b *bytes.Buffer, c diag.Code) {
	if len(c.Checks) == 0 {
		return
	}
	b.WriteString("\n| sub-code | what is wrong |\n|---|---|\n")
	for _, check := range c.Checks {
		fmt.Fprintf(b, "| `%s` | %s |\n", diag.SubCode(c.Name, check.Name), check.Summary)
	}
}

// page returns the page of a family.
func (f *family) page(root string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n%s\n[All rules](README.md)\n", f.heading(), generated)
	for _, c := range f.codes {
		fmt.Fprintf(&b, "\n## %s\n\n%s (%s)\n", c.Name, c.Doc, c.Severity)
		writeChecks(&b, c)
		example, err := exampleOf(root, c)
		if err == nil && example != nil {
			err = example.write(&b)
		} else if err == nil {
			err = writeChange(&b, root, c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return b.Bytes(), nil
}
